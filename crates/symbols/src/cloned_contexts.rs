//! [`read`] reads the table of calling contexts that the link by `isotherm-cc` wrote into a program: the calls in the source, and for each
//! allocation site the lists of calls that can lead to it, each with an id of its own ([`Contexts`]). The resolver, `isotherm import`, the
//! search for a plan's sites in a new build and `isotherm sites --contexts` use it; the program need not run.
//!
//! The layout is [`isotherm_abi::contexts`]'s. The file is not trusted: an invalid number ends the context,
//! and no byte beyond the section is read.

use std::collections::BTreeMap;
use std::path::Path;

use isotherm_abi::contexts::{
    ALLOCATION_WORDS, CALL_BYTES, FUNCTION_WORDS, HEADER_WORDS, LEVELS_MAX, NONE,
    PROGRAM_CALL_WORDS, SECTION, VERSION, longer,
};
use isotherm_model::site::{Frame, SiteId};
use object::{Object, ObjectSection};

use crate::compiled_sites::{CompiledSite, text_at};
use crate::program_file::{ProgramFile, in_program};

/// Largest table that is accepted.
const SECTION_BYTES_MAX: u64 = 256 << 20;

/// Most contexts that are accepted; a link makes no more than a quarter of them.
const RECORDS_MAX: usize = 1 << 20;

/// Most calls in the source that are accepted; sqlite3 has 13,000 that lead to allocations.
const CALLS_MAX: usize = 1 << 20;

/// A call in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextCall {
    /// Its hash, the same in every build that does not change the function.
    pub hash: u64,
    /// The function that holds the call.
    pub function: String,
    /// Source file, relative to the project's root if it is below.
    pub path: String,
    /// Line; `None` if unknown to the compiler.
    pub line: Option<u32>,
}

impl ContextCall {
    /// The names in its record, as those of a frame.
    pub(crate) fn names(&self) -> Frame {
        Frame {
            function: Some(self.function.clone()),
            file: Some(self.path.clone()),
            line: self.line,
            ..Frame::default()
        }
    }
}

/// A site, reached by certain calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Its name.
    pub id: SiteId,
    /// Address of the site's own record, as an ELF virtual address.
    pub site: u64,
    /// The calls around the allocation, by the addresses of their records, from the inside out.
    pub calls: Vec<u64>,
}

/// The contexts of a program.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    calls: BTreeMap<u64, ContextCall>,
    words: Vec<u32>,
    address: u64,
    starts: Starts,
}

/// Start of each array, in words, and its number of entries.
#[derive(Clone, Copy, Debug, Default)]
struct Starts {
    levels: usize,
    lists: usize,
    functions: usize,
    program_calls: usize,
    numbers: usize,
    allocations: usize,
    allocation_count: usize,
    records: u32,
}

/// The contexts of a program or library; none where its link separated none, or where the table is
/// of another version or damaged.
#[must_use]
pub fn read(path: &Path) -> Contexts {
    in_program(path, of_file).unwrap_or_default()
}

fn of_file(file: &ProgramFile<'_>) -> Option<Contexts> {
    let section = file.section_by_name(SECTION)?;
    if section.size() > SECTION_BYTES_MAX {
        return None;
    }
    let words: Vec<u32> = section
        .data()
        .ok()?
        .chunks_exact(4)
        .filter_map(|bytes| bytes.try_into().ok().map(u32::from_le_bytes))
        .collect();
    let (starts, call_count) = starts(&words)?;
    if call_count > CALLS_MAX {
        return None;
    }
    let mut contexts = Contexts {
        calls: BTreeMap::new(),
        words,
        address: section.address(),
        starts,
    };
    for number in 0..call_count {
        let at = HEADER_WORDS + number * (CALL_BYTES / 4);
        let text = |word| {
            let place = contexts.place(word)?;
            text_at(file, place)
        };
        let line = contexts.word(at + 4);
        let call = ContextCall {
            hash: u64::from(contexts.word(at)) | u64::from(contexts.word(at + 1)) << 32,
            path: text(at + 2).unwrap_or_default(),
            function: text(at + 3).unwrap_or_default(),
            line: (line != 0).then_some(line),
        };
        contexts.calls.insert(contexts.address_of(at), call);
    }
    Some(contexts)
}

/// The start of each array, and the number of calls in the source; `None` for an invalid table.
fn starts(words: &[u32]) -> Option<(Starts, usize)> {
    let count = |word: usize| words.get(word).map(|count| *count as usize);
    if *words.first()? != VERSION || count(1)? > LEVELS_MAX {
        return None;
    }
    let levels = count(1)?;
    let lists = HEADER_WORDS.checked_add(count(2)?.checked_mul(CALL_BYTES / 4)?)?;
    let functions = lists.checked_add(count(3)?)?;
    let program_calls = functions.checked_add(count(4)?.checked_mul(FUNCTION_WORDS)?)?;
    let numbers = program_calls.checked_add(count(5)?.checked_mul(PROGRAM_CALL_WORDS)?)?;
    let allocations = numbers.checked_add(count(5)?.checked_mul(levels)?)?;
    let end = allocations.checked_add(count(6)?.checked_mul(ALLOCATION_WORDS)?)?;
    (end <= words.len()).then_some(())?;
    let starts = Starts {
        levels,
        lists,
        functions,
        program_calls,
        numbers,
        allocations,
        allocation_count: count(6)?,
        records: *words.get(7)?,
    };
    Some((starts, count(2)?))
}

impl Contexts {
    /// The call whose record is at an ELF virtual address.
    #[must_use]
    pub fn call(&self, address: u64) -> Option<&ContextCall> {
        self.calls.get(&address)
    }

    /// All possible contexts, in the order of their records. `sites` are the program's
    /// ([`crate::compiled_sites::read`]).
    pub fn all<'a>(
        &'a self,
        sites: &'a BTreeMap<u64, CompiledSite>,
    ) -> impl Iterator<Item = Context> + 'a {
        let allocations = (0..self.starts.allocation_count).filter(move |number| {
            let at = self.starts.allocations + number * ALLOCATION_WORDS;
            // Of a damaged table; each of its records, up to a million, would be invalid.
            self.place(at + 5)
                .is_some_and(|site| sites.contains_key(&site))
        });
        let numbered = allocations.flat_map(move |number| {
            let at = self.starts.allocations + number * ALLOCATION_WORDS;
            let next = if number + 1 < self.starts.allocation_count {
                self.word(at + ALLOCATION_WORDS)
            } else {
                self.starts.records
            };
            (0..next.saturating_sub(self.word(at))).map(move |record| (at, record))
        });
        numbered
            .take(RECORDS_MAX)
            .filter_map(move |(at, record)| self.context(at, record, sites))
    }

    fn context(
        &self,
        allocation: usize,
        number: u32,
        sites: &BTreeMap<u64, CompiledSite>,
    ) -> Option<Context> {
        let site = self.place(allocation + 5)?;
        let mut calls = Vec::new();
        self.append(
            &mut calls,
            self.word(allocation + 3),
            self.word(allocation + 4),
        );
        self.append_numbered(
            &mut calls,
            self.word(allocation + 1),
            self.word(allocation + 2).min(LEVELS_MAX as u32),
            number,
        )?;
        let id = calls.iter().fold(sites.get(&site)?.id.0, |id, call| {
            longer(id, self.calls.get(call).map_or(0, |call| call.hash))
        });
        Some(Context {
            id: SiteId(id),
            site,
            calls,
        })
    }

    /// The word at a place of the table; zero beyond its end.
    fn word(&self, at: usize) -> u32 {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// The address to which a word with a distance refers.
    fn place(&self, at: usize) -> Option<u64> {
        let distance = i64::from(self.word(at).cast_signed());
        self.address_of(at).checked_add_signed(distance)
    }

    /// The ELF virtual address of a word of the table.
    fn address_of(&self, at: usize) -> u64 {
        self.address.saturating_add(4 * at as u64)
    }

    fn append(&self, calls: &mut Vec<u64>, first: u32, count: u32) {
        let room = LEVELS_MAX.saturating_sub(calls.len());
        for listed in (0..count as usize).take(room) {
            let call = self.word(self.starts.lists + first as usize + listed) as usize;
            calls.push(self.address_of(HEADER_WORDS + call * (CALL_BYTES / 4)));
        }
    }

    /// Appends the calls that a number encodes at a level of a function: each round goes one call outwards,
    /// to the call with the greatest first number that is not above. `None` for an impossible path.
    fn append_numbered(
        &self,
        calls: &mut Vec<u64>,
        mut function: u32,
        mut level: u32,
        mut number: u32,
    ) -> Option<()> {
        while level > 0 && function != NONE {
            let at = self.starts.functions + function as usize * FUNCTION_WORDS;
            let (first, count) = (self.word(at) as usize, self.word(at + 1) as usize);
            if number == 0 {
                return (self.word(at + 2) != 0).then_some(());
            }
            let column = self.starts.numbers + level as usize - 1;
            let first_number = |call: usize| self.word(column + call * self.starts.levels);
            let (mut found, mut end) = (first, first + count);
            while end - found > 1 {
                let middle = found + (end - found) / 2;
                if first_number(middle) <= number {
                    found = middle;
                } else {
                    end = middle;
                }
            }
            number = number.checked_sub(first_number(found))?;
            let call = self.starts.program_calls + found * PROGRAM_CALL_WORDS;
            let frames = self.word(call + 2).clamp(1, level);
            self.append(calls, self.word(call + 1), frames);
            level -= frames;
            function = self.word(call);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ContextCall, Contexts, LEVELS_MAX, NONE, longer, read, starts};
    use crate::compiled_sites::CompiledSite;
    use isotherm_model::site::SiteId;
    use std::collections::BTreeMap;
    use std::path::Path;

    const SITE: u64 = 0x2000;

    /// MemBrain's figure 3: one allocation in a function with three callers.
    ///
    /// ```text
    /// header | three calls in the source | lists 0, 1, 2 | one function | three calls | numbers 1, 2, 3 | one allocation
    /// 0        10                          28              31             34            43                46
    /// ```
    fn three_callers() -> Vec<u32> {
        let mut words = vec![1, 1, 3, 3, 1, 3, 1, 4, 0, 0];
        for hash in [11, 12, 13] {
            words.extend([hash, 0, 0, 0, 1, 1]);
        }
        words.extend([0, 1, 2]);
        words.extend([0, 3, 0]);
        for list in 0..3 {
            words.extend([NONE, list, 1]);
        }
        words.extend([1, 2, 3]);
        words.extend([0, 0, 1, 0, 0, 0x2000 - (0x1000 + 4 * 51)]);
        words
    }

    fn table(words: Vec<u32>) -> Option<Contexts> {
        let (starts, call_count) = starts(&words)?;
        let mut contexts = Contexts {
            calls: BTreeMap::new(),
            words,
            address: 0x1000,
            starts,
        };
        for call in (0..call_count).map(|number| 10 + 6 * number) {
            let found = ContextCall {
                hash: u64::from(contexts.word(call)),
                function: String::new(),
                path: String::new(),
                line: None,
            };
            contexts.calls.insert(contexts.address_of(call), found);
        }
        Some(contexts)
    }

    fn sites() -> BTreeMap<u64, CompiledSite> {
        let site = CompiledSite {
            id: SiteId(99),
            address: SITE,
            callee: "malloc".to_owned(),
            function: "d".to_owned(),
            path: "d.c".to_owned(),
            line: Some(1),
            column: None,
        };
        BTreeMap::from([(SITE, site)])
    }

    #[test]
    fn one_site_that_three_calls_lead_to_has_three_contexts() {
        let contexts = table(three_callers()).expect("a table");
        let found: Vec<_> = contexts.all(&sites()).collect();
        let ids: Vec<_> = found.iter().map(|context| context.id).collect();
        assert_eq!(ids, [11, 12, 13].map(|hash| SiteId(longer(99, hash))));
        assert!(found.iter().all(|context| context.site == SITE));
        assert_eq!(found[2].calls, [0x1000 + 4 * 22]);
    }

    #[test]
    fn a_function_that_others_may_call_begins_contexts_of_its_own() {
        let mut words = three_callers();
        words[33] = 1;
        let contexts = table(words).expect("a table");
        let first = contexts.all(&sites()).next().expect("a context");
        assert_eq!((first.id, first.calls.len()), (SiteId(99), 0));
    }

    #[test]
    fn a_damaged_table_gives_fewer_contexts_or_others_and_ends() {
        let whole = three_callers();
        for place in 0..whole.len() {
            for value in [0, 1, 2, 7, 1000, u32::MAX] {
                let mut words = whole.clone();
                words[place] = value;
                let contexts = table(words).unwrap_or_default();
                for context in contexts.all(&sites()).take(2000) {
                    assert_eq!(context.site, SITE, "word {place} is {value}");
                    assert!(context.calls.len() <= LEVELS_MAX, "word {place} is {value}");
                }
            }
        }
    }

    #[test]
    fn a_program_without_a_table_has_no_contexts() {
        let own = std::env::current_exe().expect("a path");
        let contexts = read(&own);
        assert_eq!(contexts.all(&BTreeMap::new()).count(), 0);
        assert!(read(Path::new("/nonexistent")).call(0).is_none());
    }

    #[test]
    fn a_table_that_claims_more_than_it_holds_is_refused() {
        assert!(starts(&[1, 3, 0, 0, 0, 0, 0, 0, 0, 0]).is_some());
        assert!(starts(&[1, 3, 1, 0, 0, 0, 0, 0, 0, 0]).is_none());
        assert!(starts(&[1, 7, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
        assert!(starts(&[2, 3, 0, 0, 0, 0, 0, 0, 0, 0]).is_none());
        assert!(
            starts(&[
                1,
                3,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                0,
                0,
                0
            ])
            .is_none()
        );
        assert!(starts(&[1]).is_none());
    }
}
