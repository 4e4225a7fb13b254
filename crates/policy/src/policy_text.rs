//! Policies as people write them: a name, and for those that have one a parameter behind `=`.
//!
//! ```text
//! thermos    static-ratio=1:3    size-threshold=64KiB    size-threshold-larger=2MiB
//! ```

use std::fmt;

use isotherm_model::port::SitePolicy;

use crate::registry::{by_name, names};
use crate::size_threshold::{FastSide, SizeThreshold};
use crate::static_ratio::{Ratio, StaticRatio};

/// A text that is no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyTextError {
    text: String,
    what: String,
}

impl fmt::Display for PolicyTextError {
    /// `policy "static-ratio=half": the ratio is fast parts to slow parts, such as 1:3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy \"{}\": {}", self.text, self.what)
    }
}

impl std::error::Error for PolicyTextError {}

/// The policy that a text means.
///
/// # Errors
/// An unknown name, a parameter where the policy has none, or one that cannot be read.
pub fn policy_from_text(text: &str) -> Result<Box<dyn SitePolicy>, PolicyTextError> {
    let wrong = |what: String| PolicyTextError {
        text: text.to_owned(),
        what,
    };
    let (name, parameter) = match text.split_once('=') {
        Some((name, parameter)) => (name.trim(), Some(parameter.trim())),
        None => (text.trim(), None),
    };
    let Some(known) = by_name(name) else {
        let names: Vec<&str> = names().collect();
        return Err(wrong(format!("there are {}", names.join(", "))));
    };
    let Some(parameter) = parameter else {
        return Ok(Box::new(known));
    };
    let threshold = |side| {
        let threshold = parameter
            .parse()
            .map_err(|error| wrong(format!("{error}")))?;
        let threshold = Some(threshold);
        Ok::<Box<dyn SitePolicy>, PolicyTextError>(Box::new(SizeThreshold { side, threshold }))
    };
    match name {
        "static-ratio" => {
            let ratio = ratio(parameter).ok_or_else(|| {
                wrong("the ratio is fast parts to slow parts, such as 1:3".to_owned())
            })?;
            Ok(Box::new(StaticRatio { ratio: Some(ratio) }))
        }
        "size-threshold" => threshold(FastSide::Smaller),
        "size-threshold-larger" => threshold(FastSide::Larger),
        _ => Err(wrong(format!("{name} has no parameter; leave out `=`"))),
    }
}

/// Two whole numbers, not both zero.
fn ratio(text: &str) -> Option<Ratio> {
    let (fast, slow) = text.split_once(':')?;
    let ratio = Ratio {
        fast: fast.trim().parse().ok()?,
        slow: slow.trim().parse().ok()?,
    };
    (ratio.fast > 0 || ratio.slow > 0).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::policy_from_text;
    use crate::names;
    use crate::properties::{items, taken};
    use isotherm_model::units::Bytes;

    #[test]
    fn every_name_is_read_and_a_parameter_changes_what_is_taken() {
        for name in names() {
            assert_eq!(policy_from_text(name).unwrap().name(), name);
        }
        let sites = items(&[(1, 1), (1, 2), (1, 4), (1, 8)]);
        let taken = |text: &str| taken(&*policy_from_text(text).unwrap(), &sites, Bytes(99));
        assert_eq!(taken("size-threshold=2B"), [0, 1]);
        assert_eq!(taken("size-threshold-larger = 4B"), [2, 3]);
        assert_eq!(taken("static-ratio=1:0"), [0, 1, 2, 3]);
        assert!(taken("static-ratio=0:1").is_empty());
    }

    #[test]
    fn an_unknown_name_and_a_wrong_parameter_say_what_is_expected() {
        for (text, part) in [
            ("hot", "there are thermos, "),
            ("", "there are thermos, "),
            ("thermos=3", "thermos has no parameter"),
            ("static-ratio=half", "such as 1:3"),
            ("static-ratio=0:0", "such as 1:3"),
            ("static-ratio=-1:3", "such as 1:3"),
            ("size-threshold=64", "a unit is required"),
            ("size-threshold=", "a unit is required"),
        ] {
            let error = policy_from_text(text).err().map(|error| error.to_string());
            let error = error.unwrap_or_default();
            assert!(error.contains(part), "{text}: {error}");
            assert!(
                error.starts_with(&format!("policy \"{text}\": ")),
                "{error}"
            );
        }
    }
}
