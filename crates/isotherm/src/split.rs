//! `Split` is the value of `--split`: whether a plan may place parts of a site in different tiers. `pays` decides whether a plan with parts
//! is used instead of one of whole sites, and `is_possible` whether parts can be placed on given tiers.

use isotherm_model::emulation::Emulation;
use isotherm_model::plan::Plan;
use isotherm_model::tier::Tiers;

/// When sites are placed in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Split {
    /// Where it pays.
    Auto,
    /// Never.
    Never,
}

/// Share of all value that parts must add to a plan: less is not worth the system calls that place them.
const GAIN_AT_LEAST: f64 = 0.01;

/// Whether a plan with parts, or with a site that fits in part, serves enough more than a plan of whole sites to be used instead.
pub(crate) fn pays(split: &Plan, whole: &Plan) -> bool {
    let more = split
        .standing
        .planned
        .saturating_sub(whole.standing.planned);
    more as f64 >= split.standing.total as f64 * GAIN_AT_LEAST
}

/// Whether parts of objects can be placed on these tiers: the page trap places whole sites.
pub(crate) fn is_possible(tiers: &Tiers) -> bool {
    !matches!(tiers.emulation(), Some(Emulation::PageTrap(_)))
}

#[cfg(test)]
mod tests {
    use super::{Split, is_possible};
    use clap::ValueEnum;
    use isotherm_model::emulation::{Emulation, TimeCosts};
    use isotherm_model::tier::Tiers;
    use isotherm_model::units::Bytes;

    #[test]
    fn every_word_is_read_and_others_are_refused() {
        assert_eq!(Split::from_str("auto", false), Ok(Split::Auto));
        assert_eq!(Split::from_str("never", false), Ok(Split::Never));
        assert!(Split::from_str("always", false).is_err());
    }

    #[test]
    fn the_page_trap_places_no_parts() {
        let tiers = |emulation| Tiers::emulated(Bytes(1), Bytes(1), emulation);
        assert!(!is_possible(&tiers(Emulation::TMP)));
        assert!(is_possible(&tiers(Emulation::Time(TimeCosts::CXL))));
    }
}
