//! Reads what follows `emulated:` in `--tiers`: the costs of an emulated slow tier.

use anyhow::{Context, Result, bail};
use isotherm_model::emulation::{Emulation, Factor, TimeCosts};
use isotherm_model::shared_bandwidth::{BytesPerSecond, MachineName, SharedBandwidth};

/// The words, each at most once.
#[derive(Default)]
struct Words {
    preset: Option<(String, Emulation)>,
    latency: Option<Factor>,
    bandwidth: Option<Factor>,
    limit: Option<BytesPerSecond>,
    machine: Option<MachineName>,
}

/// Reads words with commas between them: a preset, or `L:FACTOR` and `B:FACTOR` (CoMerge's notation: how much longer accesses
/// to the slow tier wait for its latency and for its bandwidth); `limit:BANDWIDTH`, which all programs share; and the name of
/// the machine that they share it on. Without a preset and factors the costs are `default`.
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
            Some(("B", factor)) => once(&mut self.bandwidth, factor.parse()?, word),
            Some(("limit", limit)) => once(&mut self.limit, limit.parse()?, word),
            Some((name, _)) => bail!("\"{name}\" is none of L, B and limit"),
            None => once(&mut self.machine, word.parse()?, word),
        }
    }

    fn costs(self, default: impl FnOnce() -> Emulation) -> Result<Emulation> {
        let factors = self.latency.or(self.bandwidth);
        if let (Some((preset, _)), Some(_)) = (&self.preset, factors) {
            bail!("{preset} has factors of its own; give either a preset or L:FACTOR and B:FACTOR");
        }
        let shared = self.shared()?;
        let emulation = match (self.preset, factors) {
            (Some((_, preset)), _) => preset,
            (None, None) => default(),
            (None, Some(_)) => Emulation::Time(TimeCosts {
                latency: self.latency.unwrap_or(Factor::ONE),
                bandwidth: self.bandwidth.unwrap_or(Factor::ONE),
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

    fn shared(&self) -> Result<Option<SharedBandwidth>> {
        match (self.limit, self.machine) {
            (Some(limit), machine) => Ok(Some(SharedBandwidth { limit, machine })),
            (None, None) => Ok(None),
            (None, Some(name)) => bail!(
                "\"{name}\" is no preset; there are {}. If it is the name of a machine, give the bandwidth that its programs \
                 share, as in emulated:{name},limit:5GiB/s",
                Emulation::PRESETS.map(|(name, _)| name).join(", ")
            ),
        }
    }
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
        assert_eq!((shared.limit.get(), shared.machine), (5 << 30, None));
        let named = costs("limit:1GB/s,lab,L:3").unwrap();
        assert_eq!((named.latency.get(), named.bandwidth.get()), (3.0, 1.0));
        assert_eq!(named.shared.unwrap().machine.unwrap().as_str(), "lab");
        assert_eq!(costs("").unwrap(), TimeCosts::CXL);
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
            ("nvm,,L:2", "\"\" is no name"),
            ("B:0", "\"0\" is no factor"),
        ] {
            let error = costs(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
            assert!(error.contains(text), "{text}: {error}");
        }
    }
}
