//! Profiles of LLVM's MemProf, as `llvm-profdata show --memory` prints them.
//!
//! ```text
//! HeapProfileRecords:            (of an indexed profile; of a raw one: MemprofProfile, Records)
//!   - GUID: 0x7f8d88fcc70a347b
//!     AllocSites:
//!     - Callstack:               from the allocation outwards
//!       - { Function: 0x7f8d88fcc70a347b, LineOffset: 1, Column: 10, IsInlineFrame: false }
//!       MemInfoBlock:
//!         AllocCount: 1          allocations; TotalSize, MaxSize: bytes
//!         TotalAccessCount: 2    loads and stores, counted by the instrumented program
//! ```
//!
//! A call stack is an allocation site. MemProf knows no addresses and no residency: a site's bytes
//! are the most that can have been live at once, and its accesses are spread evenly over them.

mod events;

use std::collections::BTreeMap;
use std::io::BufRead;

use isotherm_model::batch::{Epoch, Extent, Process, SourceReport};
use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile, Resident};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes, Nanos};

use crate::error::{Error, Fault, Place};
use crate::grain::Grain;
use crate::number;
use crate::site_hash::site_hash;
use events::{Event, Events};

const BLOCK: &str = "a MemInfoBlock with AllocCount, TotalSize and TotalAccessCount (or with the \
                     totals of lifetime and access density)";
/// Nesting of lists and maps at most; the format needs seven.
const DEPTH: usize = 32;
/// Chunks of all sites together at most; their size is doubled until they are no more.
const CHUNKS: u64 = 1 << 20;
/// Where the first site is laid; any address does, as the program's are not known.
const FIRST_ADDRESS: u64 = 1 << 32;
/// MemProf's clock: milliseconds.
const MILLISECOND: u64 = 1_000_000;

/// What a map of the file is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Site,
    Frame,
    Block,
    Other,
}

/// A list or map that is open.
#[derive(Clone, Debug)]
enum Level {
    /// With the key of which the value comes next.
    Map(About, Option<String>),
    /// With the key whose value it is.
    List(String),
}

/// One allocation site while its lines are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Draft {
    frames: Vec<Frame>,
    numbers: BTreeMap<String, u64>,
}

/// True where the line begins a profile of this format.
pub(crate) fn is_heading(line: &str) -> bool {
    ["HeapProfileRecords:", "MemprofProfile:"].contains(&line.trim_end())
}

/// The profile of a file.
pub(crate) fn read(
    source: impl BufRead + 'static,
    file: &str,
    grain: Grain,
) -> Result<Profile, Error> {
    let mut reader = Reader::default();
    let mut events = Events::new(source, file);
    while let Some((event, line)) = events.next_event()? {
        reader
            .take(event, line)
            .map_err(|fault| fault.at(file, Place::Line(line)))?;
    }
    if reader.sites.is_empty() {
        let expected = "AllocSites (`llvm-profdata show --memory PROFILE` prints them)";
        return Err(Fault::new("it holds no allocation site", expected).at(file, Place::Whole));
    }
    Ok(profile(&reader.sites, grain))
}

/// What was understood so far.
#[derive(Debug, Default)]
struct Reader {
    open: Vec<Level>,
    draft: Draft,
    frame: Frame,
    /// Line of the site's beginning.
    line: u64,
    sites: BTreeMap<SiteId, Draft>,
}

impl Reader {
    fn take(&mut self, event: Event, line: u64) -> Result<(), Fault> {
        match event {
            Event::MapStart => self.map_starts(line)?,
            Event::ListStart => {
                let key = self.key();
                self.push(Level::List(key))?;
            }
            Event::End => self.ends()?,
            Event::Scalar(text) => self.scalar(text)?,
        }
        Ok(())
    }

    fn push(&mut self, level: Level) -> Result<(), Fault> {
        if self.open.len() >= DEPTH {
            let found = format!("lists and maps are nested {DEPTH} deep");
            return Err(Fault::new(found, "a profile, which nests seven"));
        }
        self.open.push(level);
        Ok(())
    }

    /// The key whose value begins here, or in whose list it stands.
    fn key(&self) -> String {
        match self.open.last() {
            Some(Level::Map(_, key)) => key.clone().unwrap_or_default(),
            Some(Level::List(key)) => key.clone(),
            None => String::new(),
        }
    }

    fn is_within(&self, about: About) -> bool {
        let is = |level: &Level| matches!(level, Level::Map(what, _) if *what == about);
        self.open.iter().any(is)
    }

    fn map_starts(&mut self, line: u64) -> Result<(), Fault> {
        let in_site = self.is_within(About::Site);
        let about = match self.key().as_str() {
            "AllocSites" if !in_site => About::Site,
            "Callstack" if in_site => About::Frame,
            "MemInfoBlock" if in_site => About::Block,
            _ => About::Other,
        };
        match about {
            About::Site => {
                self.draft = Draft::default();
                self.line = line;
            }
            About::Frame => self.frame = Frame::default(),
            About::Block | About::Other => {}
        }
        self.push(Level::Map(about, None))
    }

    fn ends(&mut self) -> Result<(), Fault> {
        match self.open.pop() {
            Some(Level::Map(About::Frame, _)) => {
                self.draft.frames.push(std::mem::take(&mut self.frame));
            }
            Some(Level::Map(About::Site, _)) => self.keep()?,
            _ => {}
        }
        self.value_is_over();
        Ok(())
    }

    fn value_is_over(&mut self) {
        if let Some(Level::Map(_, key)) = self.open.last_mut() {
            *key = None;
        }
    }

    fn scalar(&mut self, text: String) -> Result<(), Fault> {
        let Some(Level::Map(about, key)) = self.open.last_mut() else {
            return Ok(());
        };
        let Some(key) = key.take() else {
            *key = Some(text);
            return Ok(());
        };
        match about {
            About::Frame => frame_field(&mut self.frame, &key, text),
            About::Block => block_field(&mut self.draft, &key, &text),
            About::Site | About::Other => Ok(()),
        }
    }

    /// Keeps a site that is whole. An inlined function's sites are printed again with its callers;
    /// the copies are equal and count once. A stack with other numbers is added up.
    fn keep(&mut self) -> Result<(), Fault> {
        let draft = std::mem::take(&mut self.draft);
        let wrong = |what: &str| {
            let found = format!("the site that begins in line {} has no {what}", self.line);
            Fault::new(found, BLOCK)
        };
        if draft.frames.is_empty() {
            return Err(wrong("Callstack"));
        }
        let has = |keys: &[&str]| keys.iter().all(|key| draft.numbers.contains_key(*key));
        if !has(&["AllocCount", "TotalSize"]) {
            return Err(wrong("AllocCount or TotalSize"));
        }
        if !has(&["TotalAccessCount"]) && !has(&["TotalLifetime", "TotalLifetimeAccessDensity"]) {
            return Err(wrong("TotalAccessCount"));
        }
        let id = site_hash(draft.frames.iter().flat_map(|frame| {
            let function = frame.function.clone().unwrap_or_default();
            function.into_bytes().into_iter().chain([0])
        }));
        match self.sites.get_mut(&id) {
            Some(known) if *known == draft => {}
            Some(known) => add(known, &draft),
            None => drop(self.sites.insert(id, draft)),
        }
        Ok(())
    }
}

/// Adds up two blocks of one stack: what is a maximum stays one, and so does the last moment.
fn add(known: &mut Draft, other: &Draft) {
    for (key, number) in &other.numbers {
        let sum = known.numbers.entry(key.clone()).or_default();
        *sum = match key.as_str() {
            "AllocTimestamp" => (*sum).min(*number),
            "DeallocTimestamp" => (*sum).max(*number),
            key if key.starts_with("Max") => (*sum).max(*number),
            key if key.starts_with("Min") => (*sum).min(*number),
            _ => sum.saturating_add(*number),
        };
    }
}

/// A frame's name is its function, and line and column counted from the function's first line, as
/// MemProf tells calls apart: `_Z3foov:+1:10`.
fn frame_field(frame: &mut Frame, key: &str, text: String) -> Result<(), Fault> {
    let name = frame.function.take().unwrap_or_default();
    frame.function = Some(match key {
        // A symbol is better than the hash that stood before it; a missing one is not.
        "SymbolName" if text != "<None>" => match name.split_once(':') {
            Some((_, place)) => format!("{text}:{place}"),
            None => text,
        },
        "Function" => text,
        "LineOffset" => format!("{name}:+{}", parsed(key, &text)?),
        "Column" => format!("{name}:{}", parsed(key, &text)?),
        _ => name,
    });
    Ok(())
}

fn block_field(draft: &mut Draft, key: &str, text: &str) -> Result<(), Fault> {
    // Its value is a list of another kind.
    if key.starts_with("AccessHistogram") {
        return Ok(());
    }
    draft.numbers.insert(key.to_owned(), parsed(key, text)?);
    Ok(())
}

fn parsed(key: &str, text: &str) -> Result<u64, Fault> {
    number::address(text).map_err(|_| {
        let found = format!("{key} is {}", crate::error::shown(text));
        Fault::new(found, "a whole number of zero or more, of 64 bits")
    })
}

impl Draft {
    fn number(&self, key: &str) -> Option<u64> {
        self.numbers.get(key).copied()
    }

    /// Most bytes that can have been live at once: every allocation that began before the one
    /// before it ended, at the largest size, and never more than all together.
    fn peak(&self) -> u64 {
        let total = self.number("TotalSize").unwrap_or(0);
        let overlaps = self.number("NumLifetimeOverlaps");
        let bound = self.number("MaxSize").zip(overlaps);
        let bound = bound.map(|(size, overlaps)| size.saturating_mul(overlaps.saturating_add(1)));
        bound.map_or(total, |bound| bound.min(total))
    }

    /// Loads and stores, and whether they were counted. Without a count they follow from the
    /// density (a hundred times accesses for each byte and second of lifetime, summed over
    /// allocations) as if all allocations were alike.
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

/// Sites laid one behind the other, each from the beginning of a chunk.
fn profile(sites: &BTreeMap<SiteId, Draft>, grain: Grain) -> Profile {
    let mut chunk = grain.chunk.0.max(4096);
    let chunks = |chunk: u64| {
        let of_site = |draft: &Draft| draft.peak().div_ceil(chunk).max(1);
        sites.values().map(of_site).fold(0, u64::saturating_add)
    };
    while chunks(chunk) > CHUNKS.max(sites.len() as u64) && chunk < 1 << 62 {
        chunk *= 2;
    }
    let mut profile = Profile::new(Meta {
        chunk: Bytes(chunk),
        epoch_length: span(sites),
        depth: sites
            .values()
            .map(|draft| draft.frames.len())
            .max()
            .unwrap_or(0) as u32,
        ..crate::grain::meta("MemProf")
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
        lost: 0,
        cost: Nanos::ZERO,
        cost_note: String::new(),
        trouble: String::new(),
    };
    let mut estimated = 0;
    for (id, draft) in sites {
        estimated += u64::from(!draft.accesses().1);
        address = add_site(&mut profile, *id, draft, address);
    }
    if estimated > 0 {
        report.trouble = format!(
            "{estimated} sites have no access count; theirs is estimated from their access density"
        );
    }
    profile.sources.push(report);
    profile
}

/// From the first allocation to the last end, and at least the longest life.
fn span(sites: &BTreeMap<SiteId, Draft>) -> Nanos {
    let numbers = |key: &'static str| sites.values().filter_map(move |draft| draft.number(key));
    let ends = numbers("DeallocTimestamp").max();
    let known = numbers("AllocTimestamp").min().zip(ends);
    let times = known.map_or(0, |(first, last)| last.saturating_sub(first));
    let milliseconds = times.max(numbers("MaxLifetime").max().unwrap_or(0));
    Nanos(milliseconds.max(1).saturating_mul(MILLISECOND))
}

/// Adds a site at an address; returns the address behind it.
fn add_site(profile: &mut Profile, id: SiteId, draft: &Draft, address: u64) -> u64 {
    let (epoch, process) = (Epoch(0), Process::default());
    let peak = Bytes(draft.peak());
    let chunk = profile.meta.chunk.0;
    let chunks = peak.0.div_ceil(chunk).max(1);
    profile.sites.push(Site {
        frames: draft.frames.clone(),
        allocations: draft.number("AllocCount").unwrap_or(0),
        requested: Bytes(draft.number("TotalSize").unwrap_or(0)),
        peak_requested: peak,
        peak_rss: peak,
        first_seen: u32::try_from(profile.sites.len()).unwrap_or(u32::MAX),
        ..Site::new(id, SiteKind::Heap)
    });
    profile.extents.push(Extent {
        process,
        site: id,
        address,
        bytes: peak,
        resident: peak,
        tier: None,
    });
    profile.resident.push(Resident {
        epoch,
        site: id,
        bytes: peak,
    });
    let accesses = draft.accesses().0;
    // The first chunks get what does not divide; chunks without any have no row.
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
            accesses: Accesses(count),
        });
    }
    address.saturating_add(chunks.saturating_mul(chunk))
}

#[cfg(test)]
mod tests;
