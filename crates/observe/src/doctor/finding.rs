//! A [`Finding`] says of one feature of the machine whether it works, works in part or does not work, with the cause and the remedy.

/// The state of a feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureState {
    /// It works.
    Available,
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
    /// The finding, in a few words.
    pub detail: String,
    /// Its state.
    pub state: FeatureState,
}

pub(super) fn available(feature: &'static str, detail: impl Into<String>) -> Finding {
    Finding {
        feature,
        detail: detail.into(),
        state: FeatureState::Available,
    }
}

pub(super) fn degraded(feature: &'static str, why: impl Into<String>, remedy: &str) -> Finding {
    let state = FeatureState::Degraded {
        why: why.into(),
        remedy: remedy.to_owned(),
    };
    Finding {
        feature,
        detail: "works in part".to_owned(),
        state,
    }
}

pub(super) fn missing(feature: &'static str, why: impl Into<String>, remedy: &str) -> Finding {
    let state = FeatureState::Missing {
        why: why.into(),
        remedy: remedy.to_owned(),
    };
    Finding {
        feature,
        detail: "not there".to_owned(),
        state,
    }
}

pub(super) const ALLOW_PERF: &str = "set kernel.perf_event_paranoid to 2 or less, or give the command \
                          CAP_PERFMON; in a container, allow perf_event_open in its seccomp profile";
