//! `whole_pages` splits the huge pages of which a range has only a part, so that migration can move the part alone, and lists the resident
//! pages of the range. Where the kernel does not split one, or does not report huge pages and the range may cut one, nothing of the range
//! moves.
//!
//! The kernel moves a huge page as a whole, for any address in it. `MADV_COLD` of one of its small pages splits it (`madvise_cold_or_pageout`
//! in mm/madvise.c), from outside as well, where no other process maps it and nothing else uses it at that moment.

use isotherm_model::movement::{AddressRange, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_sys::memory::Errno;

use super::system::{HUGE_BYTES, PAGE_BYTES, PageRun, PageSystem, Refusal};

const UNKNOWN: &str = "part of a huge page perhaps, which this kernel does not report (Linux 6.7)";
const WHOLE: &str = "part of a huge page that the kernel does not split: it is shared or in use";
const OLD_KERNEL: &str =
    "part of a huge page, which this kernel splits for no other process (Linux 5.10)";
const NO_RIGHT: &str = "part of a huge page; splitting it needs CAP_SYS_NICE and ptrace rights";

/// The resident pages of an outcome's range, none of them a part of a huge page; `None` where the machine cannot list them. A range whose
/// huge pages cannot be split has an empty list, and its outcome has the reason.
pub(super) fn whole_pages(
    system: &mut impl PageSystem,
    process: u32,
    outcome: &mut RangeOutcome,
) -> Option<Vec<PageRun>> {
    let range = outcome.action.range;
    let refused = match system.resident(process, range) {
        None if is_aligned(range) => return None,
        None => Fate::Denied(UNKNOWN.into()),
        Some(runs) => match split(system, process, range, runs) {
            Ok(runs) => return Some(runs),
            Err(fate) => fate,
        },
    };
    outcome.push(range.bytes, refused);
    Some(Vec::new())
}

/// The runs of a range after its huge pages that reach beyond it were split.
fn split(
    system: &mut impl PageSystem,
    process: u32,
    range: AddressRange,
    runs: Vec<PageRun>,
) -> Result<Vec<PageRun>, Fate> {
    let cut = pages_to_split(&runs);
    if cut.is_empty() {
        return Ok(runs);
    }
    for page in cut {
        system.split(process, page).map_err(fate_of)?;
    }
    let runs = system.resident(process, range).unwrap_or_default();
    match pages_to_split(&runs).is_empty() {
        true => Ok(runs),
        false => Err(Fate::Busy(WHOLE.into())),
    }
}

fn fate_of(refusal: Refusal) -> Fate {
    match refusal {
        Refusal::DryRun => Fate::NotAttempted(Reason::DryRun),
        Refusal::Kernel(Errno::SRCH) => Fate::ENDED,
        Refusal::Kernel(Errno::NOSYS) => Fate::Denied(OLD_KERNEL.into()),
        Refusal::Kernel(Errno::PERM) => Fate::Denied(NO_RIGHT.into()),
        Refusal::Kernel(_) => Fate::Busy(WHOLE.into()),
    }
}

/// One small page, at the end of a run, of each huge page of which the runs have only a part.
fn pages_to_split(runs: &[PageRun]) -> Vec<u64> {
    let mut pages = Vec::new();
    for run in runs.iter().filter(|run| run.huge) {
        let (start, end) = (run.range.start, run.range.end());
        let is_cut_at_start = !start.is_multiple_of(HUGE_BYTES);
        if is_cut_at_start {
            pages.push(start);
        }
        let is_same = is_cut_at_start && (end - 1) / HUGE_BYTES == start / HUGE_BYTES;
        if !end.is_multiple_of(HUGE_BYTES) && !is_same {
            pages.push(end - PAGE_BYTES);
        }
    }
    pages
}

const fn is_aligned(range: AddressRange) -> bool {
    range.start.is_multiple_of(HUGE_BYTES) && range.end().is_multiple_of(HUGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::pages_to_split;
    use crate::movement::migration::Migration;
    use crate::movement::system::{HUGE_BYTES, PageRun};
    use crate::movement::test_machine::{Machine, action};
    use isotherm_model::movement::{AddressRange, NodeId, RangeOutcome};
    use isotherm_model::outcome::Fate;
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;

    const PAGES: i32 = 512;

    /// Moves eight pages from the 16th on to node 1, of two huge pages on node 0.
    fn moved(machine: &mut Machine) -> RangeOutcome {
        let mut migration = Migration::new(machine).splitting();
        migration.carry_out(action(7, 16, 8, NodeId(1)))
    }

    fn on_node_1(machine: &Machine) -> Vec<usize> {
        let nodes = machine.nodes().iter().enumerate();
        nodes
            .filter(|(_, node)| **node == 1)
            .map(|(page, _)| page)
            .collect()
    }

    fn huge() -> Machine {
        let mut machine = Machine::with_pages(&vec![0; 2 * PAGES as usize]);
        machine.huge = true;
        machine
    }

    #[test]
    fn a_part_of_a_huge_page_moves_alone_and_the_others_stay_huge() {
        let mut machine = huge();
        let outcome = moved(&mut machine);
        assert_eq!(outcome.parts.len(), 1, "{outcome:?}");
        assert_eq!(outcome.parts[0].fate, Fate::Moved);
        assert_eq!(on_node_1(&machine), (16..24).collect::<Vec<_>>());
        assert_eq!(machine.split, [0]);
    }

    /// Checks that nothing moves, for a reason with these words.
    fn stays(machine: &mut Machine, wanted: &str) {
        let outcome = moved(machine);
        let [part] = outcome.parts.as_slice() else {
            panic!("{outcome:?}");
        };
        assert_eq!(part.bytes, outcome.action.range.bytes);
        let (Fate::Busy(why) | Fate::Denied(why)) = &part.fate else {
            panic!("{outcome:?}");
        };
        assert!(why.contains(wanted), "{why}");
        assert_eq!(on_node_1(machine), []);
    }

    #[test]
    fn a_huge_page_that_the_kernel_does_not_split_stays_where_it_is() {
        let mut machine = huge();
        machine.whole = true;
        stays(&mut machine, "does not split");
    }

    #[test]
    fn where_huge_pages_are_not_reported_nothing_moves_that_may_be_a_part_of_one() {
        let mut machine = huge();
        (machine.huge, machine.secretly_huge) = (false, true);
        stays(&mut machine, "Linux 6.7");
        let mut migration = Migration::new(&mut machine).splitting();
        migration.carry_out(action(7, 0, 512, NodeId(1)));
        assert_eq!(on_node_1(&machine).len(), 512);
    }

    #[test]
    fn whole_huge_pages_are_not_split_and_both_ends_of_a_range_are() {
        let run = |start: u64, end: u64, huge| PageRun {
            range: AddressRange {
                start: start * 4096,
                bytes: Bytes((end - start) * 4096),
            },
            huge,
        };
        assert_eq!(pages_to_split(&[run(512, 1536, true)]), []);
        assert_eq!(pages_to_split(&[run(3, 5, false)]), []);
        assert_eq!(pages_to_split(&[run(520, 530, true)]), [520 * 4096]);
        assert_eq!(pages_to_split(&[run(512, 530, true)]), [529 * 4096]);
        assert_eq!(
            pages_to_split(&[run(520, 1540, true)]),
            [520 * 4096, 1539 * 4096]
        );
        // Each run is split for itself.
        let runs = [run(520, 530, true), run(1024, 1030, true)];
        assert_eq!(pages_to_split(&runs), [520 * 4096, 1029 * 4096]);
        assert_eq!(HUGE_BYTES, 512 * 4096);
    }
}
