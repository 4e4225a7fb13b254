//! [`Emulation`] is the method, with its costs, by which ordinary memory becomes an emulated slow tier: by time (a thread is delayed for as
//! long as slow memory would have kept it waiting, by a [`Factor`] for latency and one for bandwidth, and by limits of the tiers'
//! bandwidths where [`SharedBandwidth`] sets them), or by page trap (the first access to a page in a period costs time). Each has a cost of
//! moving a page, and there are the presets of `--tiers emulated:PRESET`.

use std::fmt;
use std::str::FromStr;

use crate::shared_bandwidth::SharedBandwidth;
use crate::units::Nanos;

/// The method and the costs by which an emulated slow tier is slowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulation {
    /// By time: a thread is delayed for as long as slow memory would have kept it waiting.
    Time(TimeCosts),
    /// By page trap: the first access to a page in a period costs time.
    PageTrap(PageTrapCosts),
}

/// How much longer an access to slow memory takes than the same access to fast memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeCosts {
    /// Factor for an access that waits for the latency.
    pub latency: Factor,
    /// Factor for an access in a stream, which waits for the bandwidth.
    pub bandwidth: Factor,
    /// Cost of moving a page.
    pub migrate: Nanos,
    /// The bandwidths that all accesses to each tier have together, where one is limited.
    pub shared: Option<SharedBandwidth>,
}

/// Costs by page trap (TMP, section VI): protection bits are set periodically, and the first access to a page in a period costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTrapCosts {
    /// Time between two protections of the slow tier.
    pub period: Nanos,
    /// Cost of the first access to a page in a period.
    pub access: Nanos,
    /// Additional cost if the page is hot.
    pub hot: Nanos,
    /// Cost of moving a page.
    pub migrate: Nanos,
}

/// A factor of 1 to 100 in hundredths, written `2.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(u32);

impl Factor {
    /// The factor 1: the same speed.
    pub const ONE: Self = Self(100);
    /// The largest factor, 100.
    pub const AT_MOST: Self = Self(10_000);

    /// A factor in hundredths; `None` outside 100 to 10,000.
    #[must_use]
    pub const fn from_percent(percent: u32) -> Option<Self> {
        if percent < Self::ONE.0 || percent > Self::AT_MOST.0 {
            return None;
        }
        Some(Self(percent))
    }

    /// The factor in hundredths, 100 to 10,000.
    #[must_use]
    pub const fn percent(self) -> u32 {
        self.0
    }

    /// The factor as a number, 1 to 100.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

/// The error for a text that is not a factor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no factor; use a number of 1 to 100, such as 2.5")]
pub struct FactorError(String);

impl FromStr for Factor {
    type Err = FactorError;

    fn from_str(text: &str) -> Result<Self, FactorError> {
        let wrong = || FactorError(text.to_owned());
        let number: f64 = text.parse().map_err(|_| wrong())?;
        if !(1.0..=100.0).contains(&number) {
            return Err(wrong());
        }
        Self::from_percent((number * 100.0).round() as u32).ok_or_else(wrong)
    }
}

impl TimeCosts {
    /// Memory behind a CXL controller: a latency of 170 to 250 ns beside 80 to 110 ns of DRAM, and half of the bandwidth of
    /// two channels.
    pub const CXL: Self = Self::preset(230, 200);

    /// Costs with these factors in hundredths. Linux moves a page of 4 KiB in a few microseconds.
    const fn preset(latency: u32, bandwidth: u32) -> Self {
        Self {
            latency: Factor(latency),
            bandwidth: Factor(bandwidth),
            migrate: Nanos(5_000),
            shared: None,
        }
    }
}

impl PageTrapCosts {
    /// The paper's own numbers (TMP, section VI): 10 us per access, 13 us more if hot, 50 us per
    /// migrated page. The paper does not print its period; 100 ms is our choice.
    pub const PAPER: Self = Self {
        period: Nanos(100_000_000),
        access: Nanos(10_000),
        hot: Nanos(13_000),
        migrate: Nanos(50_000),
    };

    /// Longest period: longer than most runs.
    pub const PERIOD_AT_MOST: Nanos = Nanos(3_600_000_000_000);

    /// True where there are costs but no period, so that no access would ever pay them. A pair without any costs, twice the same memory, is
    /// valid: it serves to measure the cost of separating tiers.
    #[must_use]
    pub const fn is_never_paid(&self) -> bool {
        self.period.0 == 0 && (self.access.0 > 0 || self.hot.0 > 0 || self.migrate.0 > 0)
    }
}

impl Emulation {
    /// Highest cost: at a second per page a program of 1 GiB would wait for three days.
    pub const COST_AT_MOST: Nanos = Nanos(1_000_000_000);

    /// TMP's emulated tiers.
    pub const TMP: Self = Self::PageTrap(PageTrapCosts::PAPER);

    /// Named costs: [`TimeCosts::CXL`], Optane DIMMs (300 ns, a third of the read bandwidth), the memory of the other socket, the
    /// slow memories of ATMem's two machines (sections 1 and 2: Optane at three times the latency of DRAM and 0.38 of its bandwidth; DRAM at
    /// 90 GB/s beside MCDRAM at 400, of like latency), and the page trap of TMP's experiment.
    pub const PRESETS: [(&'static str, Self); 6] = [
        ("cxl", Self::Time(TimeCosts::CXL)),
        ("nvm", Self::Time(TimeCosts::preset(370, 300))),
        ("remote", Self::Time(TimeCosts::preset(160, 150))),
        ("atmem-nvm", Self::Time(TimeCosts::preset(300, 263))),
        ("atmem-mcdram", Self::Time(TimeCosts::preset(100, 444))),
        ("tmp", Self::TMP),
    ];

    /// The preset with this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        Self::PRESETS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, costs)| *costs)
    }

    /// Cost of moving a page.
    #[must_use]
    pub const fn migrate(&self) -> Nanos {
        match self {
            Self::Time(costs) => costs.migrate,
            Self::PageTrap(costs) => costs.migrate,
        }
    }

    /// Time of an access to slow memory where an access to fast memory takes `fast`; by page trap, of the first access in a period.
    #[must_use]
    pub const fn access(&self, fast: Nanos) -> Nanos {
        match self {
            Self::Time(costs) => Nanos(fast.0.saturating_mul(costs.latency.percent() as u64) / 100),
            Self::PageTrap(costs) => fast.saturating_add(costs.access),
        }
    }

    /// The first cost or period above its limit: its name, its value and the limit.
    #[must_use]
    pub fn out_of_range(&self) -> Option<(&'static str, Nanos, Nanos)> {
        let most = Self::COST_AT_MOST;
        let trap = match self {
            Self::Time(_) => None,
            Self::PageTrap(costs) => Some([
                ("period", costs.period, PageTrapCosts::PERIOD_AT_MOST),
                ("access", costs.access, most),
                ("hot", costs.hot, most),
            ]),
        };
        let all = trap.into_iter().flatten();
        all.chain([("migrate", self.migrate(), most)])
            .find(|(_, number, most)| number > most)
    }
}

#[cfg(test)]
mod tests {
    use super::{Emulation, Factor};

    #[test]
    fn a_factor_reads_what_it_writes() {
        for text in ["1", "2.5", "3.25", "100"] {
            let factor: Factor = text.parse().expect("a factor");
            assert_eq!(factor.to_string(), text);
        }
        for text in ["0.99", "101", "NaN", "", "2x", "-3", "inf"] {
            assert!(text.parse::<Factor>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_costs_of_each_preset_are_in_range() {
        assert!(
            Emulation::PRESETS
                .iter()
                .all(|(_, costs)| costs.out_of_range().is_none())
        );
    }
}
