//! [`PageOut`] moves memory of any process to swap, which may be compressed memory, and back, without help of the process. In two
//! submodules the kernel chooses the pages instead: [`run_group`] has it reclaim memory of the control group of a run, [`group_reclaim`] of
//! a group whose processes the daemon may not page out.
//!
//! Pages leave by `process_madvise(MADV_PAGEOUT)`, in batches short enough not to disturb the program, as long as swap has room; the page
//! table shows afterwards which pages left. They come back by a read of one byte of each page, before the program touches it; where the
//! process may not be read, by `MADV_WILLNEED`, which brings pages to the swap cache only. Neither changes the contents of memory. If this
//! process ends or dies, the other process gets each paged-out page back at its next touch.
//!
//! Memory that stays, with its reason: locked memory, hugetlb, a device's memory; files and shared memory; pages shared with a forked
//! process; parts of a huge page, which leaves as a whole; pages in use by the kernel or a device.
//!
//! The target of an action is [`PAGED_OUT`] or [`IN_MEMORY`](isotherm_model::paged::IN_MEMORY).

pub mod group_reclaim;
mod known_room;
mod memory_room;
pub mod run_group;
pub mod system;
#[cfg(test)]
mod test_swap;

use std::ops::Range;

use isotherm_model::movement::{AddressRange, RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, NO_RIGHT, NO_ROOM, NO_SWAP_ROOM, Reason, SHARED};
use isotherm_model::paged::PAGED_OUT;
use isotherm_model::port::RangeExecutor;
use isotherm_model::spans;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_sys::memory::Errno;
use isotherm_sys::remote_memory::{PageAdvice, RANGES_AT_MOST};

use super::batch::BatchSize;
use super::system::{HUGE_BYTES, PAGE_BYTES, Refusal};
use known_room::KnownRoom;
use system::{KeptRange, PagePlace, PlacedRun, SwapSystem};

/// Most pages that come back between two queries of the room for them: 1 MiB, some two milliseconds.
const BACK_PAGES: usize = 256;
/// The longest time of one call.
const LONGEST_CALL: Nanos = Nanos(20_000_000);

const IN_USE: &str = "in use by the kernel or a device, or touched again at once";
const PART_OF_HUGE: &str = "part of a huge page, which leaves memory as a whole";
const OF_FILE: &str = "of a file or shared";
const UNREADABLE: &str = "its page tables cannot be read";
const OLD_KERNEL: &str = "this kernel has no process_madvise for it (Linux 5.10)";

/// Pages memory of any process out and brings it back.
#[derive(Debug)]
pub struct PageOut<S> {
    system: S,
    size: BatchSize,
    room: KnownRoom,
}

/// The fates of parts of a range, in any order.
#[derive(Default)]
struct Fates(Vec<(AddressRange, Fate)>);

/// The reason why the rest of a range is not attempted.
struct Stop(Fate);

impl<S: SwapSystem> PageOut<S> {
    /// Batches of at most `LONGEST_CALL`, estimated from the speed of the last one.
    pub fn new(system: S) -> Self {
        Self {
            system,
            size: BatchSize::new(LONGEST_CALL.0),
            room: KnownRoom::default(),
        }
    }

    fn out(&mut self, process: u32, runs: &[PlacedRun], fates: &mut Fates) -> Result<(), Stop> {
        let mut leaving = Vec::new();
        for run in runs {
            match run.place {
                PagePlace::Out => fates.add(run.range, Fate::AlreadyThere),
                PagePlace::File => fates.add(run.range, Fate::Denied(OF_FILE.into())),
                PagePlace::Memory => leaving.push(*run),
                PagePlace::HugePage => leaving.extend(whole_huge_pages(*run, fates)),
            }
        }
        while let Some(first) = leaving.first() {
            let least = Bytes(grain(first.place));
            let room = self.room.bytes(&mut self.system, least);
            if room < least {
                let full = |run: &PlacedRun| (run.range, Fate::Busy(NO_SWAP_ROOM.into()));
                fates.0.extend(leaving.iter().map(full));
                return Ok(());
            }
            let batch = take_batch(&mut leaving, self.size.bytes().min(room.0));
            self.room.take(batch.iter().map(|range| range.bytes).sum());
            self.out_batch(process, &batch, fates)?;
        }
        Ok(())
    }

    /// Pages a batch out, around the ranges that the kernel refuses.
    fn out_batch(
        &mut self,
        process: u32,
        batch: &[AddressRange],
        fates: &mut Fates,
    ) -> Result<(), Stop> {
        let mut left = batch.to_vec();
        let mut kept: Option<Vec<KeptRange>> = None;
        while !left.is_empty() {
            let bytes = left.iter().map(|range| range.bytes.0).sum();
            let begun_ns = self.system.now_ns();
            let answer = self.system.advise(process, &left, PageAdvice::PageOut);
            self.size
                .learn(bytes, self.system.now_ns().saturating_sub(begun_ns));
            let done = match answer {
                Ok(done) => done.min(bytes),
                Err(Refusal::DryRun) => {
                    let dry = |range| (range, Fate::NotAttempted(Reason::DryRun));
                    fates.0.extend(left.into_iter().map(dry));
                    return Ok(());
                }
                Err(Refusal::Kernel(error)) if stops(error) => return Err(Stop(of_call(error))),
                Err(Refusal::Kernel(_)) => 0,
            };
            let advised = whole_within(&left, done);
            for range in left.drain(..advised) {
                self.check(process, range, fates);
            }
            let Some(range) = left.first().copied() else {
                break;
            };
            let kept = kept.get_or_insert_with(|| self.system.kept(process));
            drop(left.splice(..1, around(range, kept, fates)));
        }
        Ok(())
    }

    /// Looks up which pages of a range left.
    fn check(&mut self, process: u32, range: AddressRange, fates: &mut Fates) {
        for run in self.system.placed(process, range).unwrap_or_default() {
            match run.place {
                PagePlace::Out => fates.add(run.range, Fate::Moved),
                PagePlace::File => fates.add(run.range, Fate::Denied(OF_FILE.into())),
                PagePlace::Memory | PagePlace::HugePage => self.stayed(process, run.range, fates),
            }
        }
    }

    fn stayed(&mut self, process: u32, range: AddressRange, fates: &mut Fates) {
        if self.system.swap_room() < Bytes(PAGE_BYTES) {
            return fates.add(range, Fate::Busy(NO_SWAP_ROOM.into()));
        }
        let mut start = range.start;
        for same in self
            .system
            .exclusive(process, range)
            .chunk_by(|a, b| a == b)
        {
            let bytes = Bytes(same.len() as u64 * PAGE_BYTES);
            let fate = match same[0] {
                true => Fate::Busy(IN_USE.into()),
                false => Fate::Denied(SHARED.into()),
            };
            fates.add(AddressRange { start, bytes }, fate);
            start = start.saturating_add(bytes.0);
        }
    }

    fn back(&mut self, process: u32, runs: &[PlacedRun], fates: &mut Fates) -> Result<(), Stop> {
        let mut pages: Vec<u64> = Vec::new();
        for run in runs {
            match run.place {
                PagePlace::Out => {
                    pages.extend((run.range.start..run.range.end()).step_by(PAGE_BYTES as usize));
                }
                PagePlace::Memory | PagePlace::HugePage | PagePlace::File => {
                    fates.add(run.range, Fate::AlreadyThere);
                }
            }
        }
        let mut fits = true;
        for pages in pages.chunks(BACK_PAGES) {
            // Once there is no room, it is not queried again.
            fits = fits && self.has_room_for(process, pages_from(0, pages.len()).bytes);
            match fits {
                true => self.back_pages(process, pages, fates)?,
                false => fates.add_pages(pages, &Fate::Busy(NO_ROOM.into())),
            }
        }
        Ok(())
    }

    /// True if `bytes` may come back: the kernel kills a program of a control group that another process brings over its limit.
    fn has_room_for(&mut self, process: u32, bytes: Bytes) -> bool {
        self.system.memory_room(process) >= bytes
    }

    fn back_pages(&mut self, process: u32, pages: &[u64], fates: &mut Fates) -> Result<(), Stop> {
        let mut left = pages;
        while !left.is_empty() {
            match self.system.touch(process, left) {
                Ok(count) if count > 0 => {
                    let (came, others) = left.split_at(count.min(left.len()));
                    fates.add_pages(came, &Fate::Moved);
                    left = others;
                }
                Err(Refusal::DryRun) => {
                    fates.add_pages(left, &Fate::NotAttempted(Reason::DryRun));
                    return Ok(());
                }
                Err(Refusal::Kernel(Errno::PERM)) => {
                    self.ask_for(process, left, fates);
                    return Ok(());
                }
                Err(Refusal::Kernel(Errno::SRCH)) => return Err(Stop(of_call(Errno::SRCH))),
                // The page went away, or swap cannot be read.
                Ok(_) | Err(Refusal::Kernel(_)) => {
                    let (lost, others) = left.split_at(1);
                    fates.add_pages(lost, &Fate::Busy("the page cannot be read".into()));
                    left = others;
                }
            }
        }
        Ok(())
    }

    /// Has the kernel read pages that this process may not touch into the swap cache.
    fn ask_for(&mut self, process: u32, pages: &[u64], fates: &mut Fates) {
        let ranges = ranges_of(pages);
        let fate = match self.system.advise(process, &ranges, PageAdvice::WillNeed) {
            Ok(_) => Fate::Requested,
            Err(_) => Fate::Denied(NO_RIGHT.into()),
        };
        fates.add_pages(pages, &fate);
    }
}

impl<S: SwapSystem> RangeExecutor for PageOut<S> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let process = action.process.pid;
        if self.system.has_ended(process) {
            return RangeOutcome::whole(action, of_call(Errno::SRCH));
        }
        let Some(runs) = self.system.placed(process, action.range) else {
            return RangeOutcome::whole(action, Fate::Denied(UNREADABLE.into()));
        };
        let mut fates = Fates::default();
        let done = match action.node == PAGED_OUT {
            true => self.out(process, &runs, &mut fates),
            false => self.back(process, &runs, &mut fates),
        };
        let rest = match done {
            Ok(()) => Fate::NOT_TOUCHED,
            Err(Stop(fate)) => fate,
        };
        fates.outcome(action, &runs, rest)
    }
}

impl Fates {
    fn add(&mut self, range: AddressRange, fate: Fate) {
        self.0.push((range, fate));
    }

    /// Adds the fate of pages, which are in order; neighbours get one entry.
    fn add_pages(&mut self, pages: &[u64], fate: &Fate) {
        let ranges = ranges_of(pages).into_iter();
        self.0.extend(ranges.map(|range| (range, fate.clone())));
    }

    /// The outcome in the order of addresses. Pages of the runs without a fate have `rest`; memory between the runs was never touched.
    fn outcome(mut self, action: RangeAction, runs: &[PlacedRun], rest: Fate) -> RangeOutcome {
        self.0.sort_by_key(|(range, _)| range.start);
        let mut outcome = RangeOutcome::begin(action);
        let end = action.range.end();
        let mut at = action.range.start;
        let (mut fates, mut runs) = (self.0.as_slice(), runs);
        while at < end {
            while let Some(((range, _), left)) = fates.split_first()
                && range.end() <= at
            {
                fates = left;
            }
            while let Some((run, left)) = runs.split_first()
                && run.range.end() <= at
            {
                runs = left;
            }
            let next = fates.first().map_or(end, |(range, _)| range.start);
            let next_run = runs.first().map_or(end, |run| run.range.start);
            let (until, fate) = match (fates.first(), runs.first()) {
                (Some((range, fate)), _) if next <= at => (range.end(), fate.clone()),
                (_, Some(run)) if next_run <= at => (run.range.end().min(next), rest.clone()),
                _ => (next_run.min(next), Fate::NOT_TOUCHED),
            };
            let until = until.min(end);
            outcome.push(Bytes(until - at), fate);
            at = until;
        }
        outcome
    }
}

/// The number of leading ranges that lie within these first bytes as a whole. The kernel counts whole ranges only, but a part of the next
/// one may have left.
fn whole_within(ranges: &[AddressRange], bytes: u64) -> usize {
    let mut left = Some(bytes);
    let is_whole = |range: &&AddressRange| {
        left = left.and_then(|left| left.checked_sub(range.bytes.0));
        left.is_some()
    };
    ranges.iter().take_while(is_whole).count()
}

/// The parts of a refused range that no mapping keeps in memory by its kind. The kept parts get their reason as their fate; if none is
/// known, the whole range is kept.
fn around(range: AddressRange, kept: &[KeptRange], fates: &mut Fates) -> Vec<AddressRange> {
    let whole = [range.span()];
    let kept_spans: Vec<Range<u64>> = kept.iter().map(|stay| stay.range.span()).collect();
    let parts = spans::difference(&whole, &kept_spans);
    if parts == whole {
        let why = "the kernel refuses to page it out";
        fates.add(range, Fate::Denied(why.into()));
        return Vec::new();
    }
    let between = |span: Range<u64>| AddressRange::between(span.start, span.end);
    for (stay, span) in kept.iter().zip(kept_spans) {
        for part in spans::within(&whole, span) {
            fates.add(between(part), Fate::Denied(stay.why.into()));
        }
    }
    parts.into_iter().map(between).collect()
}

/// Takes at most `most` bytes, at least a page or a huge page, and at most [`RANGES_AT_MOST`] ranges.
fn take_batch(leaving: &mut Vec<PlacedRun>, most: u64) -> Vec<AddressRange> {
    let mut batch = Vec::new();
    let mut left = most;
    let mut taken = 0;
    for run in leaving.iter_mut() {
        let grain = grain(run.place);
        let fits = (left / grain * grain).min(run.range.bytes.0);
        let bytes = match batch.is_empty() {
            true => fits.max(grain.min(run.range.bytes.0)),
            false => fits,
        };
        if bytes == 0 || batch.len() == RANGES_AT_MOST {
            break;
        }
        batch.push(AddressRange {
            start: run.range.start,
            bytes: Bytes(bytes),
        });
        left = left.saturating_sub(bytes);
        run.range = AddressRange::between(run.range.start + bytes, run.range.end());
        if run.range.bytes > Bytes::ZERO {
            break;
        }
        taken += 1;
    }
    leaving.drain(..taken);
    batch
}

/// Bytes of a page at this place, which leaves as a whole.
const fn grain(place: PagePlace) -> u64 {
    match place {
        PagePlace::HugePage => HUGE_BYTES,
        PagePlace::Memory | PagePlace::Out | PagePlace::File => PAGE_BYTES,
    }
}

/// The huge pages that are in a run as a whole; the parts of others stay.
fn whole_huge_pages(run: PlacedRun, fates: &mut Fates) -> Option<PlacedRun> {
    let (start, end) = (run.range.start, run.range.end());
    let first = start.next_multiple_of(HUGE_BYTES).min(end);
    let last = (end / HUGE_BYTES * HUGE_BYTES).max(first);
    for part in [
        AddressRange::between(start, first),
        AddressRange::between(last, end),
    ] {
        if part.bytes > Bytes::ZERO {
            fates.add(part, Fate::Busy(PART_OF_HUGE.into()));
        }
    }
    let range = AddressRange::between(first, last);
    (range.bytes > Bytes::ZERO).then_some(PlacedRun { range, ..run })
}

/// Pages in order as ranges of neighbours.
fn ranges_of(pages: &[u64]) -> Vec<AddressRange> {
    let neighbours = pages.chunk_by(|page, next| page + PAGE_BYTES == *next);
    neighbours
        .map(|pages| pages_from(pages[0], pages.len()))
        .collect()
}

const fn pages_from(start: u64, count: usize) -> AddressRange {
    AddressRange {
        start,
        bytes: Bytes(count as u64 * PAGE_BYTES),
    }
}

/// True for errors that every further range would have, too.
fn stops(error: Errno) -> bool {
    matches!(
        error,
        Errno::SRCH | Errno::PERM | Errno::ACCESS | Errno::NOSYS
    )
}

fn of_call(error: Errno) -> Fate {
    match error {
        Errno::SRCH => Fate::ENDED,
        Errno::NOSYS => Fate::Denied(OLD_KERNEL.into()),
        _ => Fate::Denied(NO_RIGHT.into()),
    }
}

#[cfg(test)]
mod tests {
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
    use isotherm_model::outcome::{Fate, NO_ROOM, NO_SWAP_ROOM, Reason, SHARED};
    use isotherm_model::paged::{IN_MEMORY, PAGED_OUT};
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;
    use proptest::prelude::*;

    use super::test_swap::{BASE, SwapMachine, TestPage};
    use super::{IN_USE, OF_FILE, PART_OF_HUGE, PageOut};
    use crate::movement::system::DrySystem;

    const PAGE: u64 = 4096;

    fn action(page: u64, pages: u64, node: NodeId) -> RangeAction {
        RangeAction {
            process: Process { pid: 7, image: 0 },
            range: AddressRange {
                start: BASE + page * PAGE,
                bytes: Bytes(pages * PAGE),
            },
            node,
        }
    }

    /// Pages of each part, with its fate.
    fn parts(outcome: &RangeOutcome) -> Vec<(u64, Fate)> {
        let parts = outcome.parts.iter();
        parts
            .map(|part| (part.bytes.0 / PAGE, part.fate.clone()))
            .collect()
    }

    fn denied(why: &'static str) -> Fate {
        Fate::Denied(why.into())
    }

    fn busy(why: &'static str) -> Fate {
        Fate::Busy(why.into())
    }

    #[test]
    fn each_page_leaves_or_stays_with_its_reason() {
        use TestPage::{Absent, File, Locked, Memory, Out, Pinned, SharedPage};
        let mut machine = SwapMachine::new(&[
            Memory, Memory, Absent, Out, File, Locked, Memory, Pinned, SharedPage, Memory,
        ]);
        let outcome = PageOut::new(&mut machine).carry_out(action(0, 10, PAGED_OUT));
        assert_eq!(
            parts(&outcome),
            [
                (2, Fate::Moved),
                (1, Fate::NotAttempted(Reason::NotTouched)),
                (1, Fate::AlreadyThere),
                (1, denied(OF_FILE)),
                (1, denied("locked in memory")),
                (1, Fate::Moved),
                (1, busy(IN_USE)),
                (1, denied(SHARED)),
                (1, Fate::Moved),
            ]
        );
        assert_eq!(machine.pages[9], Out);
    }

    #[test]
    fn what_is_out_comes_back_and_what_was_never_touched_does_not_come() {
        use TestPage::{Absent, Memory, Out};
        let mut machine = SwapMachine::new(&[Out, Out, Absent, Memory, Out]);
        let outcome = PageOut::new(&mut machine).carry_out(action(0, 5, IN_MEMORY));
        assert_eq!(
            parts(&outcome),
            [
                (2, Fate::Moved),
                (1, Fate::NotAttempted(Reason::NotTouched)),
                (1, Fate::AlreadyThere),
                (1, Fate::Moved),
            ]
        );
        assert_eq!(machine.pages, [Memory, Memory, Absent, Memory, Memory]);
        machine.pages.fill(Out);
        machine.is_readable = false;
        let outcome = PageOut::new(&mut machine).carry_out(action(0, 5, IN_MEMORY));
        assert_eq!(parts(&outcome), [(5, Fate::Requested)], "by advice");
    }

    #[test]
    fn pages_come_back_as_far_as_control_groups_have_room_after_each_batch() {
        let mut machine = SwapMachine::new(&[TestPage::Out; 600]);
        machine.memory_room = Bytes(300 * PAGE);
        let outcome = PageOut::new(&mut machine).carry_out(action(0, 600, IN_MEMORY));
        assert_eq!(parts(&outcome), [(256, Fate::Moved), (344, busy(NO_ROOM))]);
        assert_eq!(machine.memory_room, Bytes(44 * PAGE));
    }

    #[test]
    fn a_huge_page_leaves_as_a_whole_or_not_at_all() {
        let mut machine = SwapMachine::new(&[TestPage::Huge; 1536]);
        let outcome = PageOut::new(&mut machine).carry_out(action(100, 1000, PAGED_OUT));
        let stays = busy(PART_OF_HUGE);
        assert_eq!(
            parts(&outcome),
            [(412, stays.clone()), (512, Fate::Moved), (76, stays)]
        );
    }

    #[test]
    fn full_swap_and_an_ended_process_are_said() {
        let mut machine = SwapMachine::new(&[TestPage::Memory; 4]);
        machine.room = 1;
        let outcome = PageOut::new(&mut machine).carry_out(action(0, 4, PAGED_OUT));
        assert_eq!(parts(&outcome), [(1, Fate::Moved), (3, busy(NO_SWAP_ROOM))]);
        assert_eq!(machine.calls, 1, "what has no room is not tried");
        machine.ended = true;
        for node in [PAGED_OUT, IN_MEMORY] {
            let outcome = PageOut::new(&mut machine).carry_out(action(0, 4, node));
            let ended = Fate::NotAttempted("the process has ended".into());
            assert_eq!(parts(&outcome), [(4, ended)]);
        }
    }

    #[test]
    fn without_the_right_nothing_is_tried_twice() {
        let mut machine = SwapMachine::new(&[TestPage::Memory; 1024]);
        machine.is_permitted = false;
        let outcome = PageOut::new(&mut machine).carry_out(action(0, 1024, PAGED_OUT));
        assert!(matches!(outcome.parts[0].fate, Fate::Denied(_)));
        assert_eq!(machine.calls, 1);
    }

    #[test]
    fn batches_are_short_and_a_dry_run_says_each_call() {
        let mut machine = SwapMachine::new(&[TestPage::Memory; 4096]);
        machine.page_ns = 10_000;
        PageOut::new(&mut machine).carry_out(action(0, 4096, PAGED_OUT));
        assert!(
            machine.longest_ns <= super::LONGEST_CALL.0,
            "{}",
            machine.longest_ns
        );
        let mut calls = Vec::new();
        machine.pages = vec![TestPage::Memory, TestPage::Out];
        {
            let dry = DrySystem::new(&mut machine, |call: std::fmt::Arguments<'_>| {
                calls.push(call.to_string())
            });
            let mut dry = PageOut::new(dry);
            for node in [PAGED_OUT, IN_MEMORY] {
                let outcome = dry.carry_out(action(0, 2, node));
                assert!(parts(&outcome).contains(&(1, Fate::NotAttempted(Reason::DryRun))));
            }
        }
        assert_eq!(
            calls,
            [
                "process_madvise(7, 1 ranges of 4 KiB in 0x40000000-0x40001000, MADV_PAGEOUT)",
                "process_vm_readv(7, 1 byte of 1 pages in 0x40001000-0x40002000)",
            ]
        );
        assert_eq!(machine.pages, [TestPage::Memory, TestPage::Out]);
    }

    proptest! {
        #[test]
        fn parts_cover_the_range_and_say_what_happened(
            pages in proptest::collection::vec(0..TestPage::ALL.len(), 1..700),
            first in 0_u64..20,
            to_memory in any::<bool>(),
            room in 0_usize..700,
        ) {
            let pages: Vec<TestPage> = pages.into_iter().map(|at| TestPage::ALL[at]).collect();
            let before = pages.clone();
            let mut machine = SwapMachine::new(&pages);
            machine.room = room;
            let first = first.min(pages.len() as u64 - 1);
            let count = pages.len() as u64 - first;
            let node = if to_memory { IN_MEMORY } else { PAGED_OUT };
            let outcome = PageOut::new(&mut machine).carry_out(action(first, count, node));
            prop_assert_eq!(outcome.left(), Bytes(0));
            let mut at = first as usize;
            for part in &outcome.parts {
                for _ in 0..part.bytes.0 / PAGE {
                    let left = before[at] != machine.pages[at];
                    prop_assert_eq!(left, part.fate == Fate::Moved, "page {} {:?}", at, part.fate);
                    at += 1;
                }
            }
            prop_assert_eq!(&before[..first as usize], &machine.pages[..first as usize]);
        }
    }
}
