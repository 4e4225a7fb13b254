//! `read` makes a [`Profile`] of the text that `llvm-profdata show --memory` prints for a profile of LLVM's MemProf: each call stack that
//! allocates is a site, with its allocations, bytes and accesses. `raw` reads the binary files that the programs themselves write.
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
//! MemProf records no addresses and no residency. So a site's
//! bytes are the most that can have been live at once, and its accesses are spread evenly over
//! them.

mod events;
pub(crate) mod raw;
mod stacks;

use std::collections::BTreeMap;
use std::io::BufRead;

use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, SiteId};

use crate::error::{Error, Fault, Place};
use crate::grain::Grain;
use crate::number;
use crate::site_hash::site_hash;
use events::{Event, Events};
use stacks::{Stack, profile};

const BLOCK: &str = "a MemInfoBlock with AllocCount, TotalSize and TotalAccessCount (or with the \
                     totals of lifetime and access density)";
/// Deepest nesting of lists and maps; the format needs seven.
const DEPTH: usize = 32;

/// The subject of a map in the file.
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
    /// With the key of the next value.
    Map(About, Option<String>),
    /// With the key of the list.
    List(String),
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

/// The records read so far.
#[derive(Debug, Default)]
struct Reader {
    open: Vec<Level>,
    draft: Stack,
    frame: Frame,
    /// First line of the site.
    line: u64,
    sites: BTreeMap<SiteId, Stack>,
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

    /// The key of the value that begins here, or of the list that contains it.
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
                self.draft = Stack::default();
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

    /// Keeps a complete site, which begins in this line. An inlined function's sites are printed again with its callers; the
    /// copies are equal and count once. A stack with other numbers is added.
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
            Some(known) => known.add(&draft),
            None => drop(self.sites.insert(id, draft)),
        }
        Ok(())
    }
}

/// A frame's name consists of its function, and line and column counted from the function's first
/// line, by which MemProf distinguishes calls: `_Z3foov:+1:10`.
fn frame_field(frame: &mut Frame, key: &str, text: String) -> Result<(), Fault> {
    let name = frame.function.take().unwrap_or_default();
    frame.function = Some(match key {
        // A symbol is better than the hash that was there before; a missing one is not.
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

fn block_field(draft: &mut Stack, key: &str, text: &str) -> Result<(), Fault> {
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

#[cfg(test)]
mod tests;
