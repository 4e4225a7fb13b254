//! [`Stack`] holds the frames of an allocating call stack and the numbers that MemProf recorded for it; `profile` makes a [`Profile`] of
//! all stacks. It has one epoch; each stack is a site at an invented address, as large as its live data can have been at most, with its
//! accesses (counted, or else estimated from their density) spread evenly over its chunks.

use std::collections::BTreeMap;

use isotherm_model::batch::{Epoch, Process, SourceReport};
use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes, Nanos};
use isotherm_model::words::counted;

use crate::grain::{self, Grain};

/// Most chunks of all sites together; their size is doubled until they fit.
const CHUNKS: u64 = 1 << 20;
/// Address of the first site; any address serves, because MemProf does not record the program's.
const FIRST_ADDRESS: u64 = 1 << 32;
/// MemProf's clock: milliseconds.
const MILLISECOND: u64 = 1_000_000;

/// An allocating call stack with the fields of its `MemInfoBlock`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stack {
    /// Callers, from the allocation outwards.
    pub(super) frames: Vec<Frame>,
    /// Values by LLVM's names of the fields.
    pub(super) numbers: BTreeMap<String, u64>,
}

impl Stack {
    /// Adds another block of the same stack: counts are added, and of first and last moments, minima and maxima the extreme ones are kept.
    pub(super) fn add(&mut self, other: &Self) {
        for (key, number) in &other.numbers {
            let sum = self.numbers.entry(key.clone()).or_default();
            *sum = match key.as_str() {
                "AllocTimestamp" => (*sum).min(*number),
                "DeallocTimestamp" => (*sum).max(*number),
                key if key.starts_with("Max") => (*sum).max(*number),
                key if key.starts_with("Min") => (*sum).min(*number),
                _ => sum.saturating_add(*number),
            };
        }
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.numbers.get(key).copied()
    }

    /// Most bytes that can have been live at once: one allocation more than began before the one before it ended, all of the largest size,
    /// and never more than all allocations together.
    fn peak(&self) -> u64 {
        let total = self.number("TotalSize").unwrap_or(0);
        let overlaps = self.number("NumLifetimeOverlaps");
        let bound = self.number("MaxSize").zip(overlaps);
        let bound = bound.map(|(size, overlaps)| size.saturating_mul(overlaps.saturating_add(1)));
        bound.map_or(total, |bound| bound.min(total))
    }

    /// Loads and stores, and whether they were counted. Without a count they are computed from the
    /// density (a hundred times accesses per byte and second of lifetime, summed over allocations)
    /// as if all allocations were alike.
    fn accesses(&self) -> (u64, bool) {
        if let Some(counted) = self.number("TotalAccessCount") {
            return (counted, true);
        }
        let number = |key| u128::from(self.number(key).unwrap_or(0));
        let allocations = number("AllocCount").max(1);
        let mean_size = number("TotalSize") / allocations;
        // Less than a millisecond counts as one, as MemProf does.
        let mean_lifetime = (number("TotalLifetime") / allocations).max(1);
        let density = number("TotalLifetimeAccessDensity");
        // A hundredth of accesses, times a thousand milliseconds.
        let estimate = density
            .saturating_mul(mean_size)
            .saturating_mul(mean_lifetime)
            / 100_000;
        (u64::try_from(estimate).unwrap_or(u64::MAX), false)
    }
}

/// A profile of the sites, placed one after the other, each from the beginning of a chunk.
pub(super) fn profile(sites: &BTreeMap<SiteId, Stack>, grain: Grain) -> Profile {
    let mut chunk = grain.chunk.0.max(4096);
    let chunks = |chunk: u64| {
        let of_site = |stack: &Stack| stack.peak().div_ceil(chunk).max(1);
        sites.values().map(of_site).fold(0, u64::saturating_add)
    };
    while chunks(chunk) > CHUNKS.max(sites.len() as u64) && chunk < 1 << 62 {
        chunk *= 2;
    }
    let depth = sites.values().map(|stack| stack.frames.len());
    let mut profile = Profile::new(Meta {
        chunk: Bytes(chunk),
        epoch_length: span(sites),
        depth: depth.max().unwrap_or(0) as u32,
        ..grain::meta("MemProf")
    });
    profile.epochs.push(EpochSpan {
        epoch: Epoch(0),
        span: span(sites),
    });
    let mut address = FIRST_ADDRESS.next_multiple_of(chunk);
    let mut report = SourceReport {
        name: "memprof".to_owned(),
        taken: sites.len() as u64,
        usable: sites.len() as u64,
        ..SourceReport::default()
    };
    let mut estimated = 0;
    for (id, stack) in sites {
        estimated += u64::from(!stack.accesses().1);
        address = add_site(&mut profile, *id, stack, address);
    }
    if estimated > 0 {
        report.warning = format!(
            "estimated from the access density, because there is no access count: {}",
            counted(estimated, "site")
        );
    }
    profile.sources.push(report);
    profile
}

/// From the first allocation to the last end, and at least the longest lifetime.
fn span(sites: &BTreeMap<SiteId, Stack>) -> Nanos {
    let numbers = |key: &'static str| sites.values().filter_map(move |stack| stack.number(key));
    let ends = numbers("DeallocTimestamp").max();
    let known = numbers("AllocTimestamp").min().zip(ends);
    let times = known.map_or(0, |(first, last)| last.saturating_sub(first));
    let milliseconds = times.max(numbers("MaxLifetime").max().unwrap_or(0));
    Nanos(milliseconds.max(1).saturating_mul(MILLISECOND))
}

/// Adds a site at an address; returns the address after it.
fn add_site(profile: &mut Profile, id: SiteId, stack: &Stack, address: u64) -> u64 {
    let (epoch, process) = (Epoch(0), Process::default());
    let peak = Bytes(stack.peak());
    let chunk = profile.meta.chunk.0;
    let chunks = peak.0.div_ceil(chunk).max(1);
    let site = Site {
        frames: stack.frames.clone().into(),
        allocations: stack.number("AllocCount").unwrap_or(0),
        requested: Bytes(stack.number("TotalSize").unwrap_or(0)),
        peak_requested: peak,
        peak_rss: peak,
        ..Site::new(id, SiteKind::Heap)
    };
    grain::add_site(profile, site, process, address);
    let accesses = stack.accesses().0;
    // The first chunks get the remainder of the division; chunks without accesses have no row.
    let (each, rest) = (accesses / chunks, accesses % chunks);
    for index in 0..chunks {
        let count = each + u64::from(index < rest);
        if count == 0 {
            break;
        }
        profile.heat.push(Heat {
            epoch,
            process,
            site: id,
            address: address.saturating_add(index.saturating_mul(chunk)),
            object: None,
            accesses: Accesses(count),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        });
    }
    address.saturating_add(chunks.saturating_mul(chunk))
}
