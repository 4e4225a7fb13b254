//! [`Remapping`] decides in each epoch of a run which 2 MiB pieces of data move between the first memory device and all others (the two
//! tiers of the emulated pair), so that hot data is spread over as many devices as its bandwidth and, where the capacity of a device is
//! known, its size need (Cross-Layer, sections 7.1.2 and 7.2).
//!
//! ```text
//! samples      --> temperatures of sites, cooled after 0.1 s --> which extents are hot
//! bytes served --> remapper, once a second                   --> on how many devices
//!
//! epochs        |..........|..........|..........|      at most 0.1 s each: a temperature is looked at in each
//! bandwidth     |sample    |sample    |sample           a second each: after two in one new range the data moves
//! ```
//!
//! The fast tier is the first device, the slow tier all others. With hot data on k devices every k-th piece of it, by address, is on the
//! first one; cold data is on the others. A site takes the place of a method: it is hot while its data is sampled.

use std::collections::BTreeMap;

use isotherm_model::batch::{Batch, Extent, Process};
use isotherm_model::colour::Colour;
use isotherm_model::movement::{NodeId, RangeAction};
use isotherm_model::profile::Segment;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_policy::energy::{COOL_DOWN, MethodId, Temperatures};

use crate::device_count::{DeviceCount, DeviceDecision};

/// Longest epoch: a site that is not sampled cools after this time (section 8.2), so its data is looked at as often.
pub const LONGEST_EPOCH: Nanos = COOL_DOWN;

/// Size of a piece that moves as a whole.
const PIECE: u64 = 2 << 20;

/// The tiers, as requests number them.
const FIRST: NodeId = NodeId(0);
const OTHERS: NodeId = NodeId(1);

/// The temperatures, the number of devices, and the requests so far.
#[derive(Debug)]
pub struct Remapping {
    temperatures: Temperatures,
    count: DeviceCount,
    /// Time of the run.
    now: Nanos,
    /// The device requested for each piece; a piece that is not listed is on the first device, where new data goes.
    placed: BTreeMap<(Process, u64), NodeId>,
}

/// The decision of an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemapDecision {
    /// The moves, those that leave the first device first.
    pub actions: Vec<RangeAction>,
    /// The change of the number of devices.
    pub devices: DeviceDecision,
}

impl Remapping {
    /// All hot data begins on one device.
    #[must_use]
    pub fn new(count: DeviceCount) -> Self {
        Self {
            temperatures: Temperatures::new(COOL_DOWN),
            count,
            now: Nanos::ZERO,
            placed: BTreeMap::new(),
        }
    }

    /// Devices that hold hot data.
    #[must_use]
    pub const fn devices(&self) -> u32 {
        self.count.devices()
    }

    /// Decides after an epoch, at whose end there are these extents.
    pub fn decide(
        &mut self,
        batch: &Batch,
        segment: &Segment,
        extents: &[Extent],
    ) -> RemapDecision {
        self.now = self.now.saturating_add(batch.span);
        let sampled = segment.heat.iter().filter(|heat| heat.accesses.0 > 0);
        for heat in sampled {
            self.temperatures.sample(MethodId(heat.site.0), self.now);
        }
        let hot = placeable(extents).filter(|extent| self.colour(extent) == Colour::Hot);
        let hot = hot.map(|extent| extent.resident).sum();
        RemapDecision {
            devices: self.count.decide(self.now, batch, hot),
            actions: self.place(extents),
        }
    }

    fn colour(&self, extent: &Extent) -> Colour {
        self.temperatures.method(MethodId(extent.site.0), self.now)
    }

    /// The moves that bring every piece where it belongs.
    fn place(&mut self, extents: &[Extent]) -> Vec<RangeAction> {
        let mut placed = BTreeMap::new();
        let mut moves = Vec::new();
        for extent in placeable(extents) {
            let colour = self.colour(extent);
            for range in extent.range().cut(PIECE) {
                let key = (extent.process, range.start);
                let node = self.node_of(colour, range.start);
                let before = self.placed.get(&key).copied().unwrap_or(FIRST);
                placed.insert(key, node);
                if node != before {
                    moves.push(RangeAction {
                        process: extent.process,
                        range,
                        node,
                    });
                }
            }
        }
        self.placed = placed;
        // Moves off the first device come first and make room. The order among equals stays.
        moves.sort_by_key(|action| action.node == FIRST);
        moves
    }

    fn node_of(&self, colour: Colour, address: u64) -> NodeId {
        let is_first = (address / PIECE).is_multiple_of(u64::from(self.count.devices().max(1)));
        match colour {
            Colour::Hot if is_first => FIRST,
            Colour::Hot | Colour::Cold => OTHERS,
        }
    }
}

/// The extents whose memory can be placed.
fn placeable(extents: &[Extent]) -> impl Iterator<Item = &Extent> {
    let resident = extents
        .iter()
        .filter(|extent| extent.resident > Bytes::ZERO);
    resident.filter(|extent| extent.site.is_placeable())
}

#[cfg(test)]
mod tests {
    use super::{FIRST, LONGEST_EPOCH, OTHERS, PIECE, RemapDecision, Remapping};
    use crate::device_count::DeviceCount;
    use crate::tier_demand::SERVED;
    use isotherm_model::batch::{Batch, Count, Epoch, Extent, Process};
    use isotherm_model::movement::NodeId;
    use isotherm_model::profile::{EpochSpan, Heat, Segment};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::{Accesses, Bytes, Nanos};
    use isotherm_policy::energy::{BandwidthModel, Remap, RemapSettings};

    const HOT: SiteId = SiteId(10);
    const COLD: SiteId = SiteId(11);

    /// Four pieces of hot data and two of cold data.
    fn extents() -> [Extent; 2] {
        [(HOT, 0, 4), (COLD, 8, 2)].map(|(site, first, pieces)| Extent {
            process: Process::default(),
            site,
            address: first * PIECE,
            bytes: Bytes(pieces * PIECE),
            resident: Bytes(pieces * PIECE),
            tier: None,
        })
    }

    struct Run {
        remapping: Remapping,
        served: u64,
    }

    const SECOND: Nanos = Nanos(1_000_000_000);

    impl Run {
        /// One device below 1 GB/s, two below 2 GB/s, else three.
        fn new() -> Self {
            Self::with_capacity(None)
        }

        /// As [`Self::new`], with room for `capacity` bytes of hot data on a device.
        fn with_capacity(capacity: Option<Bytes>) -> Self {
            let model = BandwidthModel::new(vec![1_000_000_000, 2_000_000_000]);
            let model = model.expect("rising");
            Self {
                remapping: Remapping::new(DeviceCount::new(
                    model,
                    RemapSettings::default(),
                    capacity,
                )),
                served: 0,
            }
        }

        /// An epoch of a second in which memory serves `megabytes` and these sites are sampled.
        fn epoch(&mut self, megabytes: u64, sites: &[SiteId]) -> RemapDecision {
            self.epoch_of(SECOND, megabytes, sites)
        }

        /// An epoch of this length.
        fn epoch_of(&mut self, span: Nanos, megabytes: u64, sites: &[SiteId]) -> RemapDecision {
            self.served += megabytes * 1_000_000;
            let heat = |site: &SiteId| Heat {
                epoch: Epoch(0),
                process: Process::default(),
                site: *site,
                address: 0,
                object: None,
                accesses: Accesses(1),
                streamed: Accesses::ZERO,
                served: Accesses::ZERO,
            };
            let half = |name: &&str| Count::of_run(*name, self.served / 2);
            let batch = Batch {
                span,
                counts: SERVED.iter().map(half).collect(),
                ..Batch::default()
            };
            let segment = Segment {
                epoch: EpochSpan {
                    epoch: Epoch(0),
                    span,
                },
                heat: sites.iter().map(heat).collect(),
                ..Segment::default()
            };
            self.remapping.decide(&batch, &segment, &extents())
        }
    }

    /// The pieces that move, and where to.
    fn moves(decision: &RemapDecision) -> Vec<(u64, NodeId)> {
        let actions = decision.actions.iter();
        actions
            .map(|action| (action.range.start / PIECE, action.node))
            .collect()
    }

    #[test]
    fn cold_data_leaves_the_first_device_and_comes_back_when_it_is_sampled() {
        let mut run = Run::new();
        let first = run.epoch(500, &[HOT]);
        assert_eq!(moves(&first), [(8, OTHERS), (9, OTHERS)]);
        assert_eq!(moves(&run.epoch(500, &[HOT])), []);
        let warm = run.epoch(500, &[HOT, COLD]);
        assert_eq!(moves(&warm), [(8, FIRST), (9, FIRST)]);
        // Not sampled for longer than 0.1 s.
        assert_eq!(moves(&run.epoch(500, &[HOT])), [(8, OTHERS), (9, OTHERS)]);
    }

    #[test]
    fn hot_data_spreads_after_two_seconds_of_a_higher_bandwidth_and_stays_where_that_helped() {
        let mut run = Run::new();
        run.epoch(500, &[HOT]);
        assert_eq!(moves(&run.epoch(1_200, &[HOT])), []);
        let spread = run.epoch(1_200, &[HOT]);
        assert_eq!(moves(&spread), [(1, OTHERS), (3, OTHERS)]);
        let sample = spread.devices.sample.expect("a second has passed");
        assert_eq!(sample.bandwidth, 1_200_000_000);
        assert_eq!(sample.remap, Remap::To { from: 1, to: 2 });
        for _ in 0..3 {
            assert_eq!(moves(&run.epoch(1_700, &[HOT])), []);
        }
        assert_eq!(run.remapping.devices(), 2);
    }

    #[test]
    fn a_spread_that_brings_no_bandwidth_is_undone() {
        let mut run = Run::new();
        for _ in 0..3 {
            run.epoch(1_200, &[HOT]);
        }
        assert_eq!(run.remapping.devices(), 2);
        let undone = run.epoch(1_200, &[HOT]);
        assert_eq!(
            undone.devices.sample.expect("a sample").remap,
            Remap::Undo { from: 2, to: 1 }
        );
        assert_eq!(moves(&undone), [(1, FIRST), (3, FIRST)]);
    }

    #[test]
    fn hot_data_that_fills_a_device_gets_the_next_one_in_the_same_epoch() {
        let mut run = Run::with_capacity(Some(Bytes(2 * PIECE)));
        let spread = run.epoch(500, &[HOT]);
        let added = spread.devices.added.expect("four pieces need two devices");
        assert_eq!((added.from, added.to), (1, 2));
        assert_eq!(added.hot, Bytes(4 * PIECE));
        let cold = [(8, OTHERS), (9, OTHERS)];
        assert_eq!(
            moves(&spread),
            [&[(1, OTHERS), (3, OTHERS)], &cold[..]].concat()
        );
        let warm = run.epoch(500, &[HOT, COLD]);
        assert_eq!(
            warm.devices.added.map(|added| added.to),
            Some(3),
            "six pieces"
        );
        // Two seconds with less hot data.
        assert_eq!(run.epoch(500, &[HOT]).devices.added, None);
        run.epoch(500, &[HOT]);
        assert_eq!(run.remapping.devices(), 2);
    }

    /// In epochs of 0.1 s, as long as a site takes to cool, no decision is later than the paper's.
    #[test]
    fn in_epochs_of_a_tenth_data_cools_after_two_and_spreads_two_seconds_after_the_bandwidth_rose()
    {
        let mut run = Run::new();
        let tenth = LONGEST_EPOCH;
        run.epoch_of(tenth, 50, &[HOT, COLD]);
        assert_eq!(moves(&run.epoch_of(tenth, 50, &[HOT])), []);
        let cooled = run.epoch_of(tenth, 50, &[HOT]);
        assert_eq!(moves(&cooled), [(8, OTHERS), (9, OTHERS)]);
        // The bandwidth rises at 1 s; the samples at 2 s and 3 s have it.
        for _ in 3..10 {
            run.epoch_of(tenth, 50, &[HOT]);
        }
        let mut remaps = Vec::new();
        for epoch in 11..=40 {
            let decision = run.epoch_of(tenth, 120, &[HOT]);
            let remap = decision.devices.sample.map(|sample| sample.remap);
            remaps.extend(remap.filter(|it| *it != Remap::Stay).map(|it| (epoch, it)));
        }
        assert_eq!(remaps, [(30, Remap::To { from: 1, to: 2 })]);
        // The samples at 4 s and 5 s undo the spread, which did not raise the bandwidth.
        let last: Vec<_> = (41..=50)
            .filter_map(|_| run.epoch_of(tenth, 120, &[HOT]).devices.sample)
            .collect();
        assert_eq!(last[0].remap, Remap::Undo { from: 2, to: 1 });
    }
}
