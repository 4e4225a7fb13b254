//! `CodeAccesses` sums up which code accessed the data of which site: a row for each pair of a site and an instruction, with its accesses,
//! its threads, and how the samples of each thread follow each other.
//!
//! Rows and the threads of a row are bounded, so a long run of a large program takes 10 MB at most; further accesses are only counted.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use isotherm_model::batch::{ObservedAccess, Process};
use isotherm_model::code_access::{
    AccessKind, CODE_THREADS_AT_MOST, CodeAccess, InstructionId, SampleWalk, SampledInstruction,
};
use isotherm_model::site::{Frame, SiteId};
use isotherm_model::units::Accesses;

/// Most pairs of a site and an instruction. The programs examined so far have a few hundred.
const ROWS_AT_MOST: usize = if cfg!(test) { 8 } else { 1 << 14 };

/// A row's key.
type Pair = (SiteId, InstructionId);

/// The accesses of each pair of a site and an instruction, over a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeAccesses {
    instructions: HashMap<InstructionId, (Arc<Frame>, Option<AccessKind>)>,
    rows: HashMap<Pair, CountedCode>,
    changed: BTreeSet<Pair>,
    folded: u64,
}

/// The counts for one pair.
#[derive(Clone, Debug, Default)]
struct CountedCode {
    accesses: Accesses,
    streamed: Accesses,
    served: Accesses,
    threads: Vec<LastSample>,
    walk: SampleWalk,
}

/// The last sample of a thread.
#[derive(Clone, Copy, Debug)]
struct LastSample {
    process: Process,
    thread: u32,
    address: u64,
    /// Whether it was above the sample before; `None` for the first.
    up: Option<bool>,
}

impl CodeAccesses {
    /// Learns instructions, whose numbers the accesses have.
    pub(crate) fn learn(&mut self, instructions: &[SampledInstruction]) {
        for instruction in instructions {
            let frame = Frame {
                module: Arc::clone(&instruction.module),
                build_id: instruction.build_id.clone(),
                offset: instruction.offset,
                ..Frame::default()
            };
            let known = (Arc::new(frame), instruction.kind);
            self.instructions.insert(instruction.id, known);
        }
    }

    /// Counts an access to data of a site.
    pub(crate) fn count(
        &mut self,
        site: SiteId,
        instruction: InstructionId,
        access: &ObservedAccess,
    ) {
        let pair = (site, instruction);
        let is_known = self.instructions.contains_key(&instruction);
        let has_room = self.rows.len() < ROWS_AT_MOST || self.rows.contains_key(&pair);
        if !is_known || !has_room {
            self.folded = self.folded.saturating_add(1);
            return;
        }
        let row = self.rows.entry(pair).or_default();
        row.accesses += Accesses(access.count);
        row.streamed += Accesses(access.streamed);
        row.served += Accesses(access.served);
        row.follow(access);
        self.changed.insert(pair);
    }

    /// All instructions that were learned.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = &Arc<Frame>> {
        self.instructions.values().map(|(frame, _)| frame)
    }

    /// Accesses that are in no row.
    pub(crate) const fn folded(&self) -> u64 {
        self.folded
    }

    /// The rows that changed since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<CodeAccess> {
        let changed = std::mem::take(&mut self.changed);
        let rows = changed.into_iter().filter_map(|pair| {
            let (code, kind) = self.instructions.get(&pair.1)?;
            let row = self.rows.get(&pair)?;
            Some(CodeAccess {
                site: pair.0,
                code: Arc::clone(code),
                kind: *kind,
                accesses: row.accesses,
                streamed: row.streamed,
                served: row.served,
                threads: row.threads.len() as u32,
                walk: row.walk,
            })
        });
        rows.collect()
    }
}

impl CountedCode {
    /// Compares an access with the last sample of its thread. Only a limited number of threads is followed.
    fn follow(&mut self, access: &ObservedAccess) {
        let own =
            |last: &&mut LastSample| (last.process, last.thread) == (access.process, access.thread);
        let Some(last) = self.threads.iter_mut().find(own) else {
            if self.threads.len() < CODE_THREADS_AT_MOST {
                self.threads.push(LastSample {
                    process: access.process,
                    thread: access.thread,
                    address: access.address,
                    up: None,
                });
            }
            return;
        };
        let distance = access.address.abs_diff(last.address);
        if distance > 0 {
            let up = access.address > last.address;
            self.walk.add(distance, last.up == Some(up));
            last.address = access.address;
            last.up = Some(up);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CodeAccesses, ROWS_AT_MOST};
    use isotherm_model::batch::{ObservedAccess, Process};
    use isotherm_model::code_access::{
        AccessKind, CODE_THREADS_AT_MOST, CodePattern, InstructionId, SampledInstruction,
    };
    use isotherm_model::count_unit::CountUnit;
    use isotherm_model::site::SiteId;
    use isotherm_model::source_kind::SourceKind;
    use isotherm_model::units::{Accesses, Bytes};
    use std::num::NonZeroU32;

    fn id(number: u32) -> InstructionId {
        InstructionId(NonZeroU32::new(number).expect("from 1"))
    }

    fn instruction(number: u32) -> SampledInstruction {
        SampledInstruction {
            id: id(number),
            module: "/bin/app".into(),
            build_id: None,
            offset: u64::from(number) * 16,
            kind: Some(AccessKind::Load),
        }
    }

    fn access(thread: u32, address: u64) -> ObservedAccess {
        let place = (Process::default(), address);
        ObservedAccess {
            thread,
            ..ObservedAccess::at(place, SourceKind::Timer, (2, CountUnit::Time))
        }
    }

    #[test]
    fn each_pair_of_site_and_instruction_has_a_row_and_each_thread_its_own_walk() {
        let mut code = CodeAccesses::default();
        code.learn(&[instruction(1), instruction(2)]);
        for step in 0..20_u64 {
            // Two threads, each of which walks through its half.
            code.count(SiteId(5), id(1), &access(1, step * 4096));
            code.count(SiteId(5), id(1), &access(2, (1 << 30) + step * 4096));
        }
        code.count(SiteId(6), id(2), &access(1, 64));
        let rows = code.take_changed();
        let facts: Vec<_> = rows
            .iter()
            .map(|row| (row.site.0, row.code.offset, row.accesses, row.threads))
            .collect();
        assert_eq!(facts, [(5, 16, Accesses(80), 2), (6, 32, Accesses(2), 1)]);
        let stride = CodePattern::Stride(Bytes(4096));
        assert_eq!(rows[0].walk.pattern(), Some(stride));
        assert_eq!(rows[0].kind, Some(AccessKind::Load));
        assert!(code.take_changed().is_empty());
        code.count(SiteId(6), id(2), &access(1, 64));
        assert_eq!(
            code.take_changed()[0].accesses,
            Accesses(4),
            "rows are cumulative"
        );
    }

    #[test]
    fn rows_and_threads_are_bounded_and_what_has_no_room_is_counted() {
        let mut code = CodeAccesses::default();
        code.learn(&[instruction(1)]);
        for site in 0..2 * ROWS_AT_MOST as u64 {
            code.count(SiteId(site), id(1), &access(1, 64));
        }
        code.count(SiteId(0), id(9), &access(1, 64));
        assert_eq!(code.take_changed().len(), ROWS_AT_MOST);
        assert_eq!(code.folded(), ROWS_AT_MOST as u64 + 1);
        for thread in 0..100 {
            code.count(SiteId(0), id(1), &access(thread, 64));
        }
        assert_eq!(
            code.take_changed()[0].threads as usize,
            CODE_THREADS_AT_MOST
        );
    }
}
