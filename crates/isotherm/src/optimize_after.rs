//! `OptimizeAfter` is the value of `--optimize-after`, which `read` parses: when a run makes its one optimization, after a time or
//! (`first-iteration`) when its heat begins to repeat. `commands/run/optimize_after.rs` makes that run.

use isotherm_model::units::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptimizeAfter {
    /// After this time.
    Time(Nanos),
    /// When the heat begins to repeat.
    FirstIteration,
}

/// The word for [`OptimizeAfter::FirstIteration`].
pub(crate) const FIRST_ITERATION: &str = "first-iteration";

impl OptimizeAfter {
    /// Reads the flag.
    pub(crate) fn read(word: &str) -> Result<Self, String> {
        if word == FIRST_ITERATION {
            return Ok(Self::FirstIteration);
        }
        match word.parse::<Nanos>() {
            Ok(time) if time > Nanos::ZERO => Ok(Self::Time(time)),
            Ok(_) => Err("nothing is sampled in no time; give a time such as 2s".to_owned()),
            Err(error) => Err(format!("{error}, or write {FIRST_ITERATION}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST_ITERATION, OptimizeAfter};
    use isotherm_model::units::Nanos;

    #[test]
    fn a_time_and_the_word_are_read_and_others_refused() {
        let read = OptimizeAfter::read;
        assert_eq!(read("2s"), Ok(OptimizeAfter::Time(Nanos(2_000_000_000))));
        assert_eq!(read(FIRST_ITERATION), Ok(OptimizeAfter::FirstIteration));
        for bad in ["0s", "soon", "", "3"] {
            let error = read(bad).unwrap_err();
            assert!(
                error.contains("2s") || error.contains(FIRST_ITERATION),
                "{bad}: {error}"
            );
        }
    }
}
