//! `read` reads the words after `emulated:` in `--tiers` as an `Emulation`: the costs of slow memory (a preset, or factors of latency and
//! bandwidth), the bandwidth limits, and the name of an emulated machine that has limits. For four labels of CoMerge's machines, such as
//! `L:5,B:0.2`, the factors are not those of the label but those that the paper measured.

use anyhow::{Context, Result, anyhow, bail};
use isotherm_model::bandwidth_share::BandwidthShare;
use isotherm_model::emulation::{Emulation, Factor, TimeCosts};
use isotherm_model::shared_bandwidth::{BytesPerSecond, MachineName, SharedBandwidth};

/// The machines of CoMerge's Table 1 whose label has a share of the bandwidth: the share in ten-thousandths and L of the label, and
/// the factors of latency and bandwidth in hundredths that the paper measured there, because its labels are rounded: B:0.2 L:5 has
/// 310 ns and 2.2 GB/s beside 67 ns and 11.7 GB/s. `B:1,L:2` is not among them: it has no share, and factors are taken as they are.
const COMERGE_MACHINES: [((u32, u32), (u32, u32)); 4] = [
    ((5000, 300), (294, 239)),
    ((2500, 250), (260, 418)),
    ((2000, 500), (463, 532)),
    ((1500, 500), (448, 688)),
];

/// The value of the word `B:`.
#[derive(Clone, Copy)]
enum Bandwidth {
    /// How many times as long streams take.
    Times(Factor),
    /// The share of the fast tier's bandwidth that slow memory has.
    Share(BandwidthShare),
}

/// The words, each at most once.
#[derive(Default)]
struct Words {
    preset: Option<(String, Emulation)>,
    latency: Option<Factor>,
    bandwidth: Option<Bandwidth>,
    fast_limit: Option<BytesPerSecond>,
    limit: Option<BytesPerSecond>,
    machine: Option<MachineName>,
}

/// Reads words with commas between them: a preset, or `L:FACTOR` and `B:FACTOR` (how many times as long accesses to the slow tier wait for
/// its latency and for its bandwidth), or `B:SHARE` (CoMerge's notation: its bandwidth as a share of the fast tier's, below 1);
/// `limit:BANDWIDTH` of slow memory and `fast-limit:BANDWIDTH` of fast memory, which all programs share; and the name of the machine on
/// which they share them. Without a preset and factors the costs are `default`.
///
/// # Errors
/// A word that is unknown, twice, or without effect.
pub(crate) fn read(text: &str, default: impl FnOnce() -> Emulation) -> Result<Emulation> {
    let mut words = Words::default();
    for word in text.split(',').filter(|_| !text.is_empty()) {
        words
            .add(word)
            .with_context(|| format!("--tiers emulated:{text}"))?;
    }
    words
        .costs(default)
        .with_context(|| format!("--tiers emulated:{text}"))
}

impl Words {
    fn add(&mut self, word: &str) -> Result<()> {
        if let Some(preset) = Emulation::preset(word) {
            return once(&mut self.preset, (word.to_owned(), preset), word);
        }
        match word.split_once(':') {
            Some(("L", factor)) => once(&mut self.latency, factor.parse()?, word),
            Some(("B", bandwidth)) => once(&mut self.bandwidth, self::bandwidth(bandwidth)?, word),
            Some(("limit", limit)) => once(&mut self.limit, limit.parse()?, word),
            Some(("fast-limit", limit)) => once(&mut self.fast_limit, limit.parse()?, word),
            Some((name, _)) => bail!("\"{name}\" is none of L, B, limit and fast-limit"),
            None => once(&mut self.machine, word.parse()?, word),
        }
    }

    fn costs(self, default: impl FnOnce() -> Emulation) -> Result<Emulation> {
        let factors = self.factors();
        if let (Some((preset, _)), Some(_)) = (&self.preset, factors) {
            bail!("{preset} has factors of its own; give either a preset or L:FACTOR and B:FACTOR");
        }
        let shared = self.shared()?;
        let emulation = match (self.preset, factors) {
            (Some((_, preset)), _) => preset,
            // Only the emulation by time has limits.
            (None, None) if shared.is_some() => Emulation::Time(TimeCosts::CXL),
            (None, None) => default(),
            (None, Some((latency, bandwidth))) => Emulation::Time(TimeCosts {
                latency,
                bandwidth,
                ..TimeCosts::CXL
            }),
        };
        match (emulation, shared) {
            (Emulation::Time(costs), _) => Ok(Emulation::Time(TimeCosts { shared, ..costs })),
            (Emulation::PageTrap(_), None) => Ok(emulation),
            (Emulation::PageTrap(_), Some(_)) => bail!(
                "a limit needs the emulation by time, and the page trap has no bandwidth; `isotherm doctor` says whether this \
                 machine can sample threads, and `emulated:tmp` takes no limit"
            ),
        }
    }

    /// The factors of latency and bandwidth, where one of them is given.
    fn factors(&self) -> Option<(Factor, Factor)> {
        let latency = self.latency.unwrap_or(Factor::ONE);
        match self.bandwidth {
            None => self.latency.map(|latency| (latency, Factor::ONE)),
            Some(Bandwidth::Times(factor)) => Some((latency, factor)),
            Some(Bandwidth::Share(share)) => {
                Some(comerge_machine(share, latency).unwrap_or((latency, share.factor())))
            }
        }
    }

    fn shared(&self) -> Result<Option<SharedBandwidth>> {
        let shared = SharedBandwidth::new(self.fast_limit, self.limit, self.machine);
        if let (None, Some(name)) = (shared, self.machine) {
            bail!(
                "\"{name}\" is no preset; there are {}. If it is the name of a machine, give the bandwidth that its programs \
                 share, as in emulated:{name},limit:5GiB/s",
                Emulation::PRESETS.map(|(name, _)| name).join(", ")
            );
        }
        Ok(shared)
    }
}

/// The measured factors of a machine of CoMerge's Table 1, by its label.
fn comerge_machine(share: BandwidthShare, latency: Factor) -> Option<(Factor, Factor)> {
    let labelled = |((of_share, of_latency), _): &&((u32, u32), _)| {
        BandwidthShare::from_ten_thousandths(*of_share) == Some(share)
            && *of_latency == latency.percent()
    };
    let (_, (latency, bandwidth)) = COMERGE_MACHINES.iter().find(labelled)?;
    Factor::from_percent(*latency).zip(Factor::from_percent(*bandwidth))
}

fn bandwidth(text: &str) -> Result<Bandwidth> {
    let share = text.parse().map(Bandwidth::Share).ok();
    let either = share.or_else(|| text.parse().map(Bandwidth::Times).ok());
    either.ok_or_else(|| {
        anyhow!(
            "\"{text}\" is no bandwidth of slow memory; use its share of the fast tier's, 0.01 to 1, such as 0.2, or how many times \
             as long streams take, 1 to 100"
        )
    })
}

fn once<T>(place: &mut Option<T>, value: T, word: &str) -> Result<()> {
    if place.replace(value).is_some() {
        bail!("\"{word}\": there is a word of this kind already");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::read;
    use isotherm_model::emulation::{Emulation, TimeCosts};
    use isotherm_model::shared_bandwidth::BytesPerSecond;

    fn costs(text: &str) -> Result<TimeCosts, String> {
        match read(text, || Emulation::Time(TimeCosts::CXL)) {
            Ok(Emulation::Time(costs)) => Ok(costs),
            Ok(Emulation::PageTrap(_)) => Err("page trap".to_owned()),
            Err(error) => Err(format!("{error:#}")),
        }
    }

    #[test]
    fn words_in_any_order_give_costs() {
        let nvm = costs("nvm,limit:5GiB/s").unwrap();
        assert_eq!((nvm.latency.get(), nvm.bandwidth.get()), (3.7, 3.0));
        let shared = nvm.shared.unwrap();
        let limit = shared.slow().map(BytesPerSecond::get);
        assert_eq!(
            (limit, shared.fast(), shared.machine()),
            (Some(5 << 30), None, None)
        );
        let both = costs("limit:5GiB/s,fast-limit:10GiB/s").unwrap();
        let fast = both.shared.unwrap().fast().map(BytesPerSecond::get);
        assert_eq!(fast, Some(10 << 30));
        assert_eq!(
            costs("fast-limit:10GiB/s,lab")
                .unwrap()
                .shared
                .unwrap()
                .slow(),
            None
        );
        let named = costs("limit:1GB/s,lab,L:3").unwrap();
        assert_eq!((named.latency.get(), named.bandwidth.get()), (3.0, 1.0));
        assert_eq!(named.shared.unwrap().machine().unwrap().as_str(), "lab");
        assert_eq!(costs("").unwrap(), TimeCosts::CXL);
    }

    #[test]
    fn a_bandwidth_below_one_is_a_share_of_the_fast_tiers() {
        let factors = |text| {
            let costs = costs(text).unwrap();
            (costs.bandwidth.percent(), costs.latency.percent())
        };
        assert_eq!(factors("B:0.4,L:3"), (250, 300));
        assert_eq!(factors("B:0.2"), (500, 100));
        assert_eq!(factors("L:4,B:2"), (200, 400));
    }

    #[test]
    fn the_labels_of_comerges_table_have_the_factors_that_it_measured() {
        // 67 ns and 11.7 GB/s with B:1 L:1.
        let printed = [
            ("B:0.5,L:3", 197.0, 4.9),
            ("L:2.5,B:0.25", 174.0, 2.8),
            ("B:0.20,L:5.0", 310.0, 2.2),
            ("B:0.15,L:5", 300.0, 1.7),
        ];
        for (label, latency, bandwidth) in printed {
            let found = costs(label).unwrap();
            let error = |found: f64, printed: f64| (found - printed).abs();
            assert!(
                error(found.latency.get(), latency / 67.0) < 0.006,
                "{label}"
            );
            assert!(
                error(found.bandwidth.get(), 11.7 / bandwidth) < 0.006,
                "{label}"
            );
        }
        let factors = costs("B:1,L:2").unwrap();
        assert_eq!(
            (factors.bandwidth.get(), factors.latency.get()),
            (1.0, 2.0),
            "factors are taken as they are"
        );
    }

    #[test]
    fn an_error_names_the_word() {
        for (text, part) in [
            (
                "cxll",
                "\"cxll\" is no preset; there are cxl, nvm, remote, atmem-nvm, atmem-mcdram, tmp",
            ),
            ("nvm,cxl", "\"cxl\": there is a word of this kind already"),
            ("nvm,L:3", "nvm has factors of its own"),
            ("limit:5", "\"5\" is no bandwidth"),
            ("limit:1B/s", "\"1B/s\" is no bandwidth"),
            ("Lab,limit:5GiB/s", "\"Lab\" is no name"),
            ("X:3", "\"X\" is none of"),
            ("tmp,limit:5GiB/s", "the page trap"),
            ("tmp,fast-limit:5GiB/s", "the page trap"),
            ("fast-limit:5GiB/s,fast-limit:5GiB/s", "a word of this kind"),
            ("nvm,,L:2", "\"\" is no name"),
            ("B:0", "\"0\" is no bandwidth of slow memory"),
            ("B:101", "1 to 100"),
            ("L:0.5", "\"0.5\" is no factor"),
        ] {
            let error = costs(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
            assert!(error.contains(text), "{text}: {error}");
        }
    }
}
