//! Reads site policies from text on the command line: a name, and for some a parameter after `=`. It also reads the parameters of ATMem's
//! chunk selection, which is named like a policy.
//!
//! ```text
//! thermos    cold-set=5%    static-ratio=1:3    size-threshold=64KiB    size-threshold-larger=2MiB
//! atmem      atmem=m:4,alpha:0.2,N:5,epsilon:0.25,theta:0.5,period:1000,eq2:printed
//! ```

use isotherm_model::port::SitePolicy;

use crate::chunks::{ChunkParameters, CutReading};
use crate::energy::{AccessShareError, ColdSetPolicy};
use crate::registry::{by_name, names};
use crate::size_threshold::{FastSide, SizeThreshold};
use crate::static_ratio::{Ratio, StaticRatio};

/// The name of ATMem's chunk selection, which places ranges instead of sites.
pub const ATMEM: &str = "atmem";

/// The error for a text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy \"{text}\": {what}")]
pub struct PolicyTextError {
    text: String,
    what: String,
}

/// The policy for a text.
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
        let names: Vec<&str> = names().chain([ATMEM]).collect();
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
        "cold-set" => {
            let share = parameter.parse();
            let share = share.map_err(|error: AccessShareError| wrong(error.to_string()))?;
            Ok(Box::new(ColdSetPolicy { share }))
        }
        "size-threshold" => threshold(FastSide::Smaller),
        "size-threshold-larger" => threshold(FastSide::Larger),
        _ => Err(wrong(format!("{name} has no parameter; leave out `=`"))),
    }
}

/// The parameters in a text of chunk selection: those named after `=`, and defaults for the others. The default of ε is 1/m, the smallest
/// value; that of the period is the given one.
///
/// # Errors
/// Another name than [`ATMEM`], or a parameter that is unknown, malformed or out of range.
pub fn chunk_parameters_from_text(
    text: &str,
    sample_period: u64,
) -> Result<ChunkParameters, PolicyTextError> {
    let wrong = |what: String| PolicyTextError {
        text: text.to_owned(),
        what,
    };
    let (name, list) = match text.split_once('=') {
        Some((name, list)) => (name, Some(list)),
        None => (text, None),
    };
    if name.trim() != ATMEM {
        return Err(wrong(format!("chunk selection is named {ATMEM}")));
    }
    let mut parameters = ChunkParameters {
        sample_period,
        ..ChunkParameters::default()
    };
    let mut epsilon = None;
    for part in list.into_iter().flat_map(|list| list.split(',')) {
        let (name, value) = part.split_once(':').unwrap_or((part, ""));
        set_parameter(&mut parameters, &mut epsilon, name.trim(), value.trim()).map_err(wrong)?;
    }
    parameters.epsilon = epsilon.unwrap_or(1.0 / f64::from(parameters.arity));
    let checked = parameters.check().map(|()| parameters);
    checked.map_err(|error| wrong(error.to_string()))
}

/// Sets one parameter by its name in a policy's text.
fn set_parameter(
    parameters: &mut ChunkParameters,
    epsilon: &mut Option<f64>,
    name: &str,
    value: &str,
) -> Result<(), String> {
    let number = || {
        let number = value.parse::<f64>();
        number.map_err(|_| format!("\"{value}\" is no number; write m:4 or alpha:0.2"))
    };
    let whole = |_| format!("{name} is \"{value}\", and must be whole");
    match name {
        "m" => parameters.arity = value.parse().map_err(whole)?,
        "period" => parameters.sample_period = value.parse().map_err(whole)?,
        "alpha" => parameters.alpha = number()?,
        "N" => parameters.top_percent = number()?,
        "epsilon" => *epsilon = Some(number()?),
        "theta" => parameters.tree_ratio = number()?,
        "eq2" => {
            let cut = CutReading::from_word(value);
            parameters.cut =
                cut.ok_or_else(|| format!("eq2 is \"{value}\"; write eq2:printed or eq2:prose"))?;
        }
        other => {
            return Err(format!(
                "there is no parameter \"{other}\"; there are m, alpha, N, epsilon, theta, period, eq2"
            ));
        }
    }
    Ok(())
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
    use super::{chunk_parameters_from_text, policy_from_text};
    use crate::chunks::{ChunkParameters, CutReading};
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
        assert_eq!(taken("cold-set=25%"), [0, 1, 2]);
        assert!(taken("cold-set=100%").is_empty());
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
            ("cold-set=5", "such as 5% or 0.25%"),
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

    #[test]
    fn chunk_selection_takes_the_parameters_that_the_paper_names() {
        let read = |text| chunk_parameters_from_text(text, 1);
        assert_eq!(read("atmem"), Ok(ChunkParameters::default()));
        let binary = read("atmem = m:2, alpha:0.5,N:20").unwrap();
        assert_eq!((binary.arity, binary.epsilon), (2, 0.5));
        assert_eq!((binary.alpha, binary.top_percent), (0.5, 20.0));
        assert_eq!(read("atmem=epsilon:1").unwrap().epsilon, 1.0);
        let others = read("atmem=theta:0.25,period:1000,eq2:printed").unwrap();
        assert_eq!((others.tree_ratio, others.sample_period), (0.25, 1000));
        assert_eq!(others.cut, CutReading::Printed);
        assert_eq!(read("atmem=eq2:prose").unwrap().cut, CutReading::Prose);
        let given = chunk_parameters_from_text("atmem=m:4", 64).unwrap();
        assert_eq!(given.sample_period, 64);
        for (text, part) in [
            ("atmen", "named atmem"),
            ("atmem=", "no parameter \"\"; there are m, alpha"),
            ("atmem=m", "must be whole"),
            ("atmem=m:0", "m is 0, and must be at least 2"),
            ("atmem=alpha:much", "\"much\" is no number"),
            ("atmem=N:nan", "N is NaN, and must be above 0"),
            (
                "atmem=m:4,epsilon:0.1",
                "epsilon is 0.1, and must be from 1/m",
            ),
            (
                "atmem=theta:-1",
                "the tree ratio is -1, and must be at least 0",
            ),
            (
                "atmem=period:0",
                "the sample period is 0, and must be at least 1",
            ),
            ("atmem=period:1.5", "period is \"1.5\", and must be whole"),
            (
                "atmem=eq2:text",
                "eq2 is \"text\"; write eq2:printed or eq2:prose",
            ),
            (
                "atmem=beta:1",
                "there are m, alpha, N, epsilon, theta, period, eq2",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
