//! [`OnlineConfig`] holds the costs of accesses and moves and the other parameters of the online policy.

use isotherm_model::tier::{ORDINARY_LATENCY, Tiers};
use isotherm_model::units::{Bytes, Nanos};

/// Assumed time to move a 4 KiB page if none is reported: one copy at 2 GB/s, the lower end of the
/// rate of moves into recycled pages.
const PAGE_COPY: Nanos = Nanos(2_000);

/// Parameters of the online policy.
#[derive(Clone, Debug)]
pub struct OnlineConfig {
    /// The tiers.
    pub tiers: Tiers,
    /// Share of the newest epoch in the quick average, above 0 and at most 1.
    pub quick: f64,
    /// Share of the newest epoch in the slow average, above 0 and at most 1.
    pub slow: f64,
    /// Time for which a moved site is expected to stay as hot as it is.
    pub horizon: Nanos,
    /// Factor by which the gain of a move must exceed its cost.
    pub hysteresis: f64,
    /// Accesses that one counted access represents; see [`OnlineConfig::sampled_every`].
    pub accesses_per_sample: f64,
    /// Cost of an access in each tier, fastest first.
    pub access: Vec<Nanos>,
    /// Size of a page.
    pub page: Bytes,
    /// Cost to the program of moving a page.
    pub move_page: Nanos,
}

impl OnlineConfig {
    /// Parameters from the known properties of the tiers: the costs of the emulated pair, else
    /// latencies, else each tier twice as slow as the faster one. A source that counts every
    /// access; averages over about 2 and 10 epochs; a horizon of 10 s; a move must earn one and a
    /// half times its cost.
    #[must_use]
    pub fn for_tiers(tiers: Tiers) -> Self {
        let mut access = Vec::new();
        for tier in tiers.all() {
            let last = access.last().copied();
            let last = last.unwrap_or(Nanos(ORDINARY_LATENCY.0 / 2));
            let guess = Nanos(last.0.saturating_mul(2));
            access.push(tier.idle_latency().unwrap_or(guess).max(last));
        }
        let emulation = tiers.emulation();
        Self {
            move_page: emulation.map_or(PAGE_COPY, |emulation| emulation.migrate()),
            tiers,
            quick: 0.5,
            slow: 0.1,
            horizon: Nanos(10_000_000_000),
            hysteresis: 1.5,
            accesses_per_sample: 1.0,
            access,
            page: Bytes(4096),
        }
    }

    /// Counts come from a sampler that takes one sample in this interval of processor time. A
    /// sample then represents the accesses that the slowest tier serves in the interval: the lowest
    /// estimate, so that moves are judged with caution.
    #[must_use]
    pub fn sampled_every(mut self, interval: Nanos) -> Self {
        let slowest = self.access.last().map_or(1, |cost| cost.0.max(1));
        self.accesses_per_sample = (interval.0 as f64 / slowest as f64).max(1.0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::OnlineConfig;
    use isotherm_model::emulation::Emulation;
    use isotherm_model::tier::Tiers;
    use isotherm_model::units::{Bytes, Nanos};

    #[test]
    fn the_costs_of_the_emulated_pair_are_those_of_its_emulation() {
        let tiers = Tiers::emulated(Bytes(1), Bytes(1), Emulation::TMP);
        let config = OnlineConfig::for_tiers(tiers).sampled_every(Nanos(1_010_000));
        assert_eq!(config.access, [Nanos(100), Nanos(10_100)]);
        assert_eq!(config.move_page, Nanos(50_000));
        assert!((config.accesses_per_sample - 100.0).abs() < 1e-9);
    }
}
