//! [`BandwidthShare`] is the bandwidth of slow memory as a share of fast memory's, as `--tiers emulated:B:0.2` gives it in CoMerge's
//! notation, and computes the [`Factor`] by which a stream in slow memory takes longer.

use std::str::FromStr;

use crate::emulation::Factor;

/// A share of 0.01 to below 1, in ten-thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BandwidthShare(u32);

impl BandwidthShare {
    const WHOLE: u32 = 10_000;
    /// A hundredth: a stream then takes [`Factor::AT_MOST`] times as long.
    const AT_LEAST: u32 = 100;

    /// A share in ten-thousandths; `None` outside 100 to 9,999.
    #[must_use]
    pub const fn from_ten_thousandths(share: u32) -> Option<Self> {
        if share < Self::AT_LEAST || share >= Self::WHOLE {
            return None;
        }
        Some(Self(share))
    }

    /// How many times as long a stream takes: the reciprocal of the share, rounded to hundredths.
    #[must_use]
    pub fn factor(self) -> Factor {
        // A share of at least 100 gives at most 10,000 hundredths, one of at most 9,999 at least 100.
        let hundredths = (100 * Self::WHOLE + self.0 / 2) / self.0;
        Factor::from_percent(hundredths).unwrap_or(Factor::AT_MOST)
    }
}

/// The error for a text that is not a share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no share of a bandwidth; use a number of 0.01 to below 1, such as 0.2")]
pub struct BandwidthShareError(String);

impl FromStr for BandwidthShare {
    type Err = BandwidthShareError;

    fn from_str(text: &str) -> Result<Self, BandwidthShareError> {
        let number: Option<f64> = text.parse().ok();
        let share = number
            .filter(|number| (0.01..1.0).contains(number))
            .and_then(|number| {
                Self::from_ten_thousandths((number * f64::from(Self::WHOLE)).round() as u32)
            });
        share.ok_or_else(|| BandwidthShareError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::BandwidthShare;

    #[test]
    fn a_share_makes_streams_take_one_by_it_times_as_long() {
        for (text, percent) in [
            ("0.5", 200),
            ("0.25", 400),
            ("0.2", 500),
            ("0.15", 667),
            ("0.01", 10_000),
            ("0.9999", 100),
        ] {
            let share: BandwidthShare = text.parse().expect("a share");
            assert_eq!(share.factor().percent(), percent, "{text}");
        }
        for text in ["1", "0.99999", "0.009", "0", "-0.5", "NaN", "", "0.5x"] {
            assert!(text.parse::<BandwidthShare>().is_err(), "{text}");
        }
    }
}
