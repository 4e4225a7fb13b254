//! [`Migration`] obeys requests of the observer, the Isotherm process outside, to move arenas, mappings and pages between the tiers of the
//! emulation by time. No content moves: pages change their tier in [`PageTiers`], those of a few chunks in each step. A thread takes a step
//! at a sample or while it waits for the moves, and pays for its pages. A request for an arena or a mapping also sets the tier of its pages
//! that are first touched later.

use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use isotherm_abi::config::TierRecord;
use isotherm_abi::session::SessionCounter;

use super::page_tiers::{CHUNK_PAGES, PageTiers};
use crate::emulation::{Account, PAGE_BYTES, PlacementRequest, Subject};
use crate::published_tiers::Side;
use crate::tables::SessionTables;

/// Chunks of one step.
const CHUNKS_PER_STEP: usize = 4;

/// Pages of one step where pages are requested: as many as one chunk has.
const PAGES_PER_STEP: usize = CHUNK_PAGES;

/// A request under way.
struct Job {
    request: PlacementRequest,
    chunks: Range<usize>,
    /// Of a request for pages: the pages left of a stretch whose numbers follow one another, and the addresses behind the stretch.
    pages: Range<usize>,
    behind: Range<usize>,
}

impl Job {
    fn is_done(&self) -> bool {
        self.chunks.is_empty() && self.pages.is_empty() && self.behind.is_empty()
    }

    /// Goes on to the next stretch once one is done.
    fn go_on(&mut self, tiers: &PageTiers) {
        if self.pages.is_empty() {
            let next = tiers.first_pages_in(&self.behind);
            let (pages, end) = next.unwrap_or((0..0, self.behind.end));
            self.pages = pages;
            self.behind.start = end;
        }
    }
}

/// The requests of one pool.
pub(crate) struct Migration {
    tables: SessionTables,
    /// Set while a thread takes a step.
    busy: AtomicBool,
    job: UnsafeCell<Option<Job>>,
}

// SAFETY: `job` is touched only by the thread that set `busy`.
unsafe impl Sync for Migration {}

impl Migration {
    pub(crate) const fn new(tables: SessionTables) -> Self {
        Self {
            tables,
            busy: AtomicBool::new(false),
            job: UnsafeCell::new(None),
        }
    }

    /// Takes a step, unless another thread does. Returns the number of pages that moved.
    pub(crate) fn step(&self, pages: &PageTiers, tiers: &[TierRecord], account: &Account) -> u64 {
        if self.busy.swap(true, Ordering::Acquire) {
            return 0;
        }
        // SAFETY: this thread set `busy`.
        let job = unsafe { &mut *self.job.get() };
        let (mut moved, mut left) = (0, PAGES_PER_STEP);
        while left > 0 {
            if job.is_none() {
                *job = self.next_job(pages, tiers);
            }
            let Some(current) = job.as_mut() else { break };
            if let Subject::Pages(..) = current.request.subject {
                let before = current.pages.len();
                moved += advance_pages(current, left, (pages, tiers), account);
                // A stretch counts as a page at least, so that requests outside the tables end the step too.
                left = left.saturating_sub((before - current.pages.len()).max(1));
                current.go_on(pages);
            } else {
                moved += self.advance(current, pages, tiers, account);
                left = 0;
            }
            if current.is_done() {
                if let Subject::Pages(..) = current.request.subject {
                    self.tables.accept(&current.request);
                }
                *job = None;
            }
        }
        self.busy.store(false, Ordering::Release);
        moved
    }

    fn next_job(&self, pages: &PageTiers, tiers: &[TierRecord]) -> Option<Job> {
        let request = self.tables.first_request(tiers.len() as u32)?;
        // A request for pages is accepted once all of them have moved: the observer waits for that.
        if !matches!(request.subject, Subject::Pages(..)) {
            self.tables.accept(&request);
        }
        let mut job = Job {
            chunks: 0..0,
            pages: 0..0,
            behind: 0..0,
            request,
        };
        match job.request.subject {
            Subject::Arena(_) => job.chunks = 0..pages.used_chunks(),
            Subject::Mapping(index) => {
                job.chunks = pages.chunks(&self.tables.mapping_range(index)?)
            }
            Subject::Pages(start, count) => {
                let bytes = count.saturating_mul(PAGE_BYTES);
                job.behind = start..start.saturating_add(bytes);
                job.go_on(pages);
            }
        }
        Some(job)
    }

    /// Moves the pages of the job's next chunks.
    fn advance(
        &self,
        job: &mut Job,
        pages: &PageTiers,
        tiers: &[TierRecord],
        account: &Account,
    ) -> u64 {
        let (side, counter) = target(job, tiers);
        let mut moved = 0;
        let mut left = CHUNKS_PER_STEP;
        while left > 0 && !job.chunks.is_empty() {
            let chunk = job.chunks.start;
            job.chunks.start += 1;
            let is_subject = match job.request.subject {
                Subject::Arena(arena) => self.tables.owns(arena, chunk),
                Subject::Mapping(_) | Subject::Pages(..) => true,
            };
            if !is_subject || pages.wanted(chunk).is_none() {
                continue;
            }
            left -= 1;
            pages.want_chunk(chunk, side);
            let all = chunk * CHUNK_PAGES..(chunk + 1) * CHUNK_PAGES;
            moved += all.filter(|page| pages.migrate(*page, side)).count() as u64;
        }
        account.add(counter, moved);
        moved
    }
}

/// The tier of a job, and the counter of its pages.
fn target(job: &Job, tiers: &[TierRecord]) -> (Side, SessionCounter) {
    match Side::of_tier(tiers, job.request.tier) {
        Side::Fast => (Side::Fast, SessionCounter::PagesPromoted),
        Side::Slow => (Side::Slow, SessionCounter::PagesDemoted),
    }
}

/// Moves the next pages of the job, at most `at_most`. Pages that the program first touches later are placed as before: the
/// request is about data that exists.
fn advance_pages(
    job: &mut Job,
    at_most: usize,
    (pages, tiers): (&PageTiers, &[TierRecord]),
    account: &Account,
) -> u64 {
    let (side, counter) = target(job, tiers);
    let end = job.pages.start.saturating_add(at_most).min(job.pages.end);
    let now = job.pages.start..end;
    job.pages.start = end;
    let moved = now.filter(|page| pages.migrate(*page, side)).count() as u64;
    account.add(counter, moved);
    moved
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_PAGES, Migration, PageTiers, Side};
    use crate::emulation::{Account, PAGE_BYTES};
    use crate::tables::SessionTables;
    use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use isotherm_abi::config::{NODE_WORDS, RuntimeMode, TierRecord, TierRecordKind};
    use isotherm_abi::page_tiers::PageRequest;
    use isotherm_abi::session::{SessionCounter, SessionLayout};

    const CHUNK: usize = CHUNK_PAGES * PAGE_BYTES;
    const BASE: usize = 1 << 40;

    fn tiers() -> [TierRecord; 2] {
        [TierRecordKind::EmulatedFast, TierRecordKind::EmulatedSlow].map(|kind| TierRecord {
            kind: kind as u32,
            policy: 1,
            capacity_bytes: u64::MAX,
            nodes: [0; NODE_WORDS],
        })
    }

    /// Requests of (first page, pages, tier) in a session without arenas.
    fn requests(all: &[(usize, u32, u32)]) -> SessionTables {
        let header = SessionLayout::for_pool(1 << 30).header(RuntimeMode::Online, 4);
        let count = all.len() as u64;
        header.pages.requested.store(count, Ordering::Relaxed);
        let records = all.iter().map(|(page, pages, tier)| PageRequest {
            start: AtomicU64::new((BASE + page * PAGE_BYTES) as u64),
            pages: AtomicU32::new(*pages),
            tier: AtomicU32::new(*tier),
        });
        SessionTables {
            header: Box::leak(Box::new(header)),
            arenas: &[],
            owners: &[],
            mappings: &[],
            touches: &[],
            page_requests: Box::leak(records.collect::<Box<[_]>>()),
        }
    }

    /// Tables with this many pages with data, of which the first `fast` are fast.
    fn tiers_of(pages: usize, fast: usize) -> PageTiers {
        let room = (fast * PAGE_BYTES) as u64;
        let tiers = PageTiers::map(BASE..BASE + 4 * CHUNK, room).expect("maps");
        tiers.want(BASE, 4 * CHUNK, Side::Fast);
        (0..pages).for_each(|page| {
            tiers.tier_of(page);
        });
        tiers
    }

    #[test]
    fn pages_move_in_the_order_of_their_requests_and_nonsense_is_passed_over() {
        let pages = tiers_of(6, 2);
        // The demotion of 0 and 1 makes room for 4 and 5; tier 7 does not exist, and the last lies outside the pool.
        let tables = requests(&[(0, 2, 1), (4, 2, 0), (2, 1, 7), (1 << 30, 9, 0)]);
        let migration = Migration::new(tables);
        let account = Account(Some(tables));
        let moved = migration.step(&pages, &tiers(), &account);
        let sides: Vec<Side> = (0..6).map(|page| pages.tier_of(page)).collect();
        let (fast, slow) = (Side::Fast, Side::Slow);
        assert_eq!(
            (moved, sides),
            (4, vec![slow, slow, slow, slow, fast, fast])
        );
        assert_eq!(tables.header.pages.obeyed.load(Ordering::Relaxed), 4);
        assert_eq!(account.get(SessionCounter::PagesPromoted), 2);
        assert_eq!(account.get(SessionCounter::PagesDemoted), 2);
        assert_eq!(pages.tier_of(9), slow, "the room is taken");
    }

    #[test]
    fn a_step_moves_a_chunk_at_most_and_the_next_one_goes_on() {
        let pages = tiers_of(3 * CHUNK_PAGES, 3 * CHUNK_PAGES);
        let tables = requests(&[(1, 2 * CHUNK_PAGES as u32 + 3, 1)]);
        let (migration, account) = (Migration::new(tables), Account(None));
        let step = || {
            let moved = migration.step(&pages, &tiers(), &account);
            (moved, tables.header.pages.obeyed.load(Ordering::Relaxed))
        };
        let chunk = CHUNK_PAGES as u64;
        assert_eq!(
            [step(), step(), step(), step()],
            [(chunk, 0), (chunk, 0), (3, 1), (0, 1)],
            "the request is obeyed when its last page has moved"
        );
    }
}
