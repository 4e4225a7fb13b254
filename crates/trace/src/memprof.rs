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
    let mut reader = Reader {
        events: Events::new(source, file),
        file,
        line: 0,
        draft: Stack::default(),
        sites: BTreeMap::new(),
    };
    while let Some(event) = reader.next()? {
        reader.value(event, "", (false, 0))?;
    }
    if reader.sites.is_empty() {
        let expected = "AllocSites (`llvm-profdata show --memory PROFILE` prints them)";
        return Err(Fault::new("it holds no allocation site", expected).at(file, Place::Whole));
    }
    Ok(profile(&reader.sites, grain))
}

/// The records read so far.
struct Reader<'a, R: BufRead> {
    events: Events<R>,
    file: &'a str,
    /// Line of the last event.
    line: u64,
    draft: Stack,
    sites: BTreeMap<SiteId, Stack>,
}

impl<R: BufRead + 'static> Reader<'_, R> {
    fn next(&mut self) -> Result<Option<Event>, Error> {
        let next = self.events.next_event()?;
        Ok(next.map(|(event, line)| {
            self.line = line;
            event
        }))
    }

    /// The next event of a map or list; `None` at its end.
    fn next_within(&mut self) -> Result<Option<Event>, Error> {
        Ok(self.next()?.filter(|event| *event != Event::End))
    }

    fn wrong(&self, fault: Fault) -> Error {
        fault.at(self.file, Place::Line(self.line))
    }

    /// Reads the rest of a value that begins with this event. `key` is that of the value, or of the list that contains it.
    fn value(
        &mut self,
        begin: Event,
        key: &str,
        (in_site, depth): (bool, usize),
    ) -> Result<(), Error> {
        if matches!(begin, Event::Scalar(_) | Event::End) {
            return Ok(());
        }
        if depth >= DEPTH {
            let found = format!("lists and maps are nested {DEPTH} deep");
            return Err(self.wrong(Fault::new(found, "a profile, which nests seven")));
        }
        if begin == Event::MapStart {
            return self.map(key, (in_site, depth + 1));
        }
        while let Some(event) = self.next_within()? {
            self.value(event, key, (in_site, depth + 1))?;
        }
        Ok(())
    }

    fn map(&mut self, key: &str, (in_site, depth): (bool, usize)) -> Result<(), Error> {
        let begin = self.line;
        let about = match key {
            "AllocSites" if !in_site => About::Site,
            "Callstack" if in_site => About::Frame,
            "MemInfoBlock" if in_site => About::Block,
            _ => About::Other,
        };
        if about == About::Site {
            self.draft = Stack::default();
        }
        let within = (in_site || about == About::Site, depth);
        let mut frame = Frame::default();
        while let Some(event) = self.next_within()? {
            let Event::Scalar(key) = event else {
                self.value(event, "", within)?;
                continue;
            };
            let Some(value) = self.next_within()? else {
                break;
            };
            let field = match (about, value) {
                (About::Frame, Event::Scalar(text)) => frame_field(&mut frame, &key, text),
                (About::Block, Event::Scalar(text)) => block_field(&mut self.draft, &key, &text),
                (_, value) => {
                    self.value(value, &key, within)?;
                    Ok(())
                }
            };
            field.map_err(|fault| self.wrong(fault))?;
        }
        match about {
            About::Frame => self.draft.frames.push(frame),
            About::Site => self.keep(begin).map_err(|fault| self.wrong(fault))?,
            About::Block | About::Other => {}
        }
        Ok(())
    }

    /// Keeps a complete site, which begins in this line. An inlined function's sites are printed again with its callers; the
    /// copies are equal and count once. A stack with other numbers is added.
    fn keep(&mut self, begin: u64) -> Result<(), Fault> {
        let draft = std::mem::take(&mut self.draft);
        let wrong = |what: &str| {
            let found = format!("the site that begins in line {begin} has no {what}");
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
