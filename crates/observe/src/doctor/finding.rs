//! A [`Finding`] says of one feature of the machine whether it works, works in part or does not work, with the cause and the remedy.

/// The state of a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureState {
    /// It works: what it offers, in a few words.
    Available(String),
    /// It works less well than it could.
    Degraded {
        /// The limitation and its cause.
        why: String,
        /// The remedy.
        remedy: String,
    },
    /// It does not work.
    Missing {
        /// The cause.
        why: String,
        /// The remedy.
        remedy: String,
    },
}

/// The result for one feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The feature: `timer samples`, `transparent huge pages`.
    pub feature: &'static str,
    /// Its state.
    pub state: FeatureState,
}

impl FeatureState {
    /// The finding, in a few words.
    #[must_use]
    pub fn detail(&self) -> &str {
        match self {
            Self::Available(detail) => detail,
            Self::Degraded { .. } => "works in part",
            Self::Missing { .. } => "not there",
        }
    }
}

/// A feature that works.
pub fn available(detail: impl Into<String>) -> FeatureState {
    FeatureState::Available(detail.into())
}

/// A feature that works less well than it could.
pub(super) fn degraded(why: impl Into<String>, remedy: impl Into<String>) -> FeatureState {
    FeatureState::Degraded {
        why: why.into(),
        remedy: remedy.into(),
    }
}

/// A feature that does not work.
pub fn missing(why: impl Into<String>, remedy: impl Into<String>) -> FeatureState {
    FeatureState::Missing {
        why: why.into(),
        remedy: remedy.into(),
    }
}

pub(super) const ALLOW_PERF: &str = "set kernel.perf_event_paranoid to 2 or less, or give the command \
                          CAP_PERFMON; in a container, allow perf_event_open in its seccomp profile";
