//! [`PageTiers`] keeps, for the emulation by time, the tier of each page of the pool and of static data, and the tier that the page is to
//! have: two bytes for each page, and one for each chunk of the pool. It decides, changes, counts and publishes the tiers of pages within
//! the room of the fast tier.
//!
//! A page gets its tier when it is first known to hold data: at a sample in it, or when its residency is looked up. It is fast where
//! fast is wanted for the page or else for its chunk, and the fast tier has room; otherwise slow, as `MPOL_PREFERRED` does on real
//! nodes. Any thread may change any entry without a lock: the counts follow the entries. Static data of the program lies outside
//! the pool: its segments have the entries behind those of the pool.
//!
//! ```text
//! entries  | pool ...                          | segment | segment | ...
//! chunk      0                                   pool_chunks
//! ```

use core::ops::Range;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;

use isotherm_abi::page_tiers::{STATIC_PAGES, STATIC_RANGES, StaticPageTable};
use rustix::io::Errno;

use super::fast_room::FastRoom;
use crate::emulation::{PAGE_BYTES, Sparse, pool_range};
use crate::published_tiers::{self, Side};
use crate::shared_room::SharedRoom;

const CHUNK_BYTES: usize = isotherm_abi::CHUNK_BYTES as usize;

/// Pages of a chunk.
pub(crate) const CHUNK_PAGES: usize = CHUNK_BYTES / PAGE_BYTES;

/// A page that holds nothing, as far as is known.
const UNKNOWN: u8 = isotherm_abi::page_tiers::PAGE_EMPTY;

/// Chunks of all segments together.
const SEGMENT_CHUNKS: usize = STATIC_PAGES as usize / CHUNK_PAGES;

/// Limit of the number of [`WritablePart`]s whose pages have tiers; the others are fast.
pub(crate) const SEGMENTS: usize = STATIC_RANGES;

/// The part of a writable segment that comes from the module's file (`.data`), or the part that does not (`.bss`), by whole pages.
#[derive(Clone)]
pub(crate) struct WritablePart {
    pub(crate) range: Range<usize>,
    /// Whether it comes from the file: the kernel calls such pages resident where any process has read them.
    pub(crate) is_of_file: bool,
}

/// One [`WritablePart`], here called a segment, with the numbers of its chunks.
#[derive(Clone, Copy, Default)]
struct Segment {
    start: usize,
    end: usize,
    /// Number of its first chunk, which begins where the segment does.
    first_chunk: usize,
    /// [`WritablePart::is_of_file`].
    is_of_file: bool,
}

impl Segment {
    /// Number of its chunks; the last one may be shorter.
    const fn chunks(&self) -> usize {
        (self.end - self.start).div_ceil(CHUNK_BYTES)
    }
}

/// The segments of all modules.
struct Segments {
    all: [Segment; SEGMENTS],
    count: usize,
    /// The tier that static data is to have where no page of it was placed by itself.
    side: Side,
}

/// The tiers of one pool, and of static data.
pub(crate) struct PageTiers {
    pool: Range<usize>,
    /// Set before the first thread is sampled.
    segments: OnceLock<Segments>,
    /// The tier that each page is to have by itself: of objects that are placed in parts, and of static data. [`UNKNOWN`] for one
    /// that goes where its chunk or its segment does.
    wanted_pages: Sparse<AtomicU8>,
    /// The tier that each chunk's data is to have; [`UNKNOWN`] for chunks without data.
    wanted: Sparse<AtomicU8>,
    /// The tier of each page; [`UNKNOWN`] for pages that hold no data.
    tiers: Sparse<AtomicU8>,
    /// First chunk that never had data.
    high: AtomicU32,
    fast: FastRoom,
    /// The fast pages that belong to segments.
    fast_static_pages: AtomicU64,
    slow_pages: AtomicU64,
    /// Pages that were slow at first, and those of them that were to be fast: [`Self::first_touches`].
    first_touches: AtomicU64,
    spilled: AtomicU64,
}

impl PageTiers {
    /// Maps the tables of a pool, whose fast tier has room for `fast_bytes`.
    pub(crate) fn map(pool: Range<usize>, fast_bytes: u64) -> Result<Self, Errno> {
        let chunks = pool.len() / CHUNK_BYTES;
        Ok(Self {
            segments: OnceLock::new(),
            wanted_pages: Sparse::map((chunks + SEGMENT_CHUNKS) * CHUNK_PAGES)?,
            wanted: Sparse::map(chunks)?,
            tiers: Sparse::map((chunks + SEGMENT_CHUNKS) * CHUNK_PAGES)?,
            high: AtomicU32::new(0),
            fast: FastRoom::new(fast_bytes, None),
            fast_static_pages: AtomicU64::new(0),
            slow_pages: AtomicU64::new(0),
            first_touches: AtomicU64::new(0),
            spilled: AtomicU64::new(0),
            pool,
        })
    }

    /// The tables with a fast tier of `fast_bytes` that other processes may use too: `shared` gets the number of pages of the tables,
    /// and makes what the processes share.
    ///
    /// # Errors
    /// The error of `shared`.
    pub(crate) fn sharing<E>(
        self,
        fast_bytes: u64,
        shared: impl FnOnce(usize) -> Result<Option<SharedRoom>, E>,
    ) -> Result<Self, E> {
        let fast = FastRoom::new(fast_bytes, shared(self.tiers.len())?);
        Ok(Self { fast, ..self })
    }

    /// Gives the room that other processes can use back, at the end of this one.
    pub(crate) fn finish(&self) {
        self.fast.finish();
    }

    /// Adds the segments that hold static data, by whole pages; their data is to be in this tier. Segments for which no entries are
    /// left, and those of a second call, are fast and take no room.
    pub(crate) fn set_segments<'a>(
        &self,
        parts: impl Iterator<Item = &'a WritablePart>,
        side: Side,
    ) {
        let (mut all, mut count) = ([Segment::default(); SEGMENTS], 0);
        let mut next = self.wanted.len();
        for WritablePart { range, is_of_file } in parts {
            let segment = Segment {
                start: range.start,
                end: range.end,
                first_chunk: next,
                is_of_file: *is_of_file,
            };
            next += segment.chunks();
            if count == SEGMENTS || next > self.wanted.len() + SEGMENT_CHUNKS {
                break;
            }
            all[count] = segment;
            count += 1;
        }
        // A second call changes nothing.
        let _ = self.segments.set(Segments { all, count, side });
    }

    fn segments(&self) -> &[Segment] {
        self.segments
            .get()
            .map_or(&[][..], |segments| &segments.all[..segments.count])
    }

    /// The addresses whose pages have numbers, those of the pool first: each stretch with the number of its first page.
    fn stretches(&self) -> impl Iterator<Item = (Range<usize>, usize)> {
        let of_segment = |segment: &Segment| {
            let first_page = segment.first_chunk * CHUNK_PAGES;
            (segment.start..segment.end, first_page)
        };
        let segments = self.segments().iter().map(of_segment);
        core::iter::once((self.pool.clone(), 0)).chain(segments)
    }

    /// The number of a page; `None` outside the pool and the segments.
    pub(crate) fn page(&self, address: usize) -> Option<usize> {
        let mut stretches = self.stretches();
        let (stretch, first) = stretches.find(|(stretch, _)| stretch.contains(&address))?;
        Some(first + (address - stretch.start) / PAGE_BYTES)
    }

    /// The segment of a chunk; `None` where it is one of the pool.
    fn segment_of(&self, chunk: usize) -> Option<&Segment> {
        let begins_before = |segment: &&Segment| segment.first_chunk <= chunk;
        self.segments().iter().rev().find(begins_before)
    }

    /// First address of a chunk, and the number of its pages; `(0, 0)` for a chunk that does not exist.
    pub(crate) fn place(&self, chunk: usize) -> (usize, usize) {
        if chunk < self.wanted.len() {
            return (self.pool.start + chunk * CHUNK_BYTES, CHUNK_PAGES);
        }
        self.segment_of(chunk).map_or((0, 0), |segment| {
            let start = segment.start + (chunk - segment.first_chunk) * CHUNK_BYTES;
            let bytes = segment.end.saturating_sub(start).min(CHUNK_BYTES);
            (start, bytes / PAGE_BYTES)
        })
    }

    /// Sets the wanted tier of the pages of a range: of an object that begins, or of static data. A page that is in the other tier
    /// is released, because its content is of no use.
    pub(crate) fn want_pages(&self, range: &Range<usize>, side: Side) {
        for address in range.clone().step_by(PAGE_BYTES) {
            let Some(page) = self.page(address) else {
                continue;
            };
            self.wanted_pages[page].store(side.code(), Ordering::Relaxed);
            let tier = self.tiers[page].load(Ordering::Relaxed);
            if tier != UNKNOWN && tier != side.code() {
                self.release(page);
            }
        }
    }

    /// Whether the first and the last page of a range, not empty, have entries.
    pub(crate) fn has_pages(&self, range: &Range<usize>) -> bool {
        self.page(range.start).is_some() && self.page(range.end - 1).is_some()
    }

    /// Chunks that may have data, in the pool and in segments: see [`Self::nth_chunk`].
    pub(crate) fn chunks_with_data(&self) -> usize {
        let of_segments: usize = self.segments().iter().map(Segment::chunks).sum();
        self.used_chunks() + of_segments
    }

    /// Whether the pages of a chunk come from a file: one that is resident need not hold data of the program.
    pub(crate) fn is_of_file(&self, chunk: usize) -> bool {
        self.segment_of(chunk)
            .is_some_and(|segment| segment.is_of_file)
    }

    /// Whether a page was placed by itself.
    pub(crate) fn is_placed(&self, page: usize) -> bool {
        self.wanted_pages[page].load(Ordering::Relaxed) != UNKNOWN
    }

    /// The number of the n-th of the chunks that [`Self::chunks_with_data`] counts.
    pub(crate) fn nth_chunk(&self, nth: usize) -> usize {
        let used = self.used_chunks();
        match nth.checked_sub(used) {
            None => nth,
            Some(in_segments) => self.wanted.len() + in_segments,
        }
    }

    /// Chunks that a range touches, as far as they are in the pool.
    pub(crate) fn chunks(&self, range: &Range<usize>) -> Range<usize> {
        pool_range::touched(&self.pool, range, CHUNK_BYTES)
    }

    /// The first pages in a range of addresses whose numbers follow one another, and the address behind them: the pool and each
    /// segment have numbers of their own. `None` where no page of the range has a number.
    pub(crate) fn first_pages_in(&self, range: &Range<usize>) -> Option<(Range<usize>, usize)> {
        let inside = self.stretches().filter_map(|(stretch, first)| {
            let (start, end) = (range.start.max(stretch.start), range.end.min(stretch.end));
            let page = |address: usize| first + (address - stretch.start) / PAGE_BYTES;
            (start < end).then(|| (start, page(start)..page(end), end))
        });
        let (_, pages, end) = inside.min_by_key(|(start, ..)| *start)?;
        Some((pages, end))
    }

    /// Number of entries that the segments take, in whole chunks.
    pub(crate) fn static_pages(&self) -> usize {
        let end = |last: &Segment| last.first_chunk + last.chunks() - self.wanted.len();
        self.segments().last().map_or(0, end) * CHUNK_PAGES
    }

    /// Tells the observer which addresses the segments have.
    pub(crate) fn publish_segments(&self, table: &StaticPageTable) {
        for (segment, range) in self.segments().iter().zip(&table.ranges) {
            let pages = (segment.end - segment.start) / PAGE_BYTES;
            let first = (segment.first_chunk - self.wanted.len()) * CHUNK_PAGES;
            range.start.store(segment.start as u64, Ordering::Relaxed);
            range.pages.store(pages as u64, Ordering::Relaxed);
            range.first.store(first as u64, Ordering::Relaxed);
        }
        let count = self.segments().len() as u64;
        table.count.store(count, Ordering::Release);
    }

    /// Chunks below this number may have data.
    pub(crate) fn used_chunks(&self) -> usize {
        self.high.load(Ordering::Relaxed) as usize
    }

    /// The tier that a chunk's data is to have; `None` where the chunk has no data.
    pub(crate) fn wanted(&self, chunk: usize) -> Option<Side> {
        match self.wanted.get(chunk) {
            Some(wanted) => Side::of(wanted.load(Ordering::Relaxed)),
            None => self.segments.get().map(|segments| segments.side),
        }
    }

    /// Whether a chunk may have data.
    pub(crate) fn has_data(&self, chunk: usize) -> bool {
        self.wanted(chunk).is_some()
    }

    /// Sets the wanted tier of the chunks of a range. Pages that have a tier keep it.
    pub(crate) fn want(&self, address: usize, bytes: usize, side: Side) {
        let chunks = self.chunks(&(address..address.saturating_add(bytes)));
        self.high.fetch_max(chunks.end as u32, Ordering::Relaxed);
        for wanted in &self.wanted[chunks] {
            wanted.store(side.code(), Ordering::Relaxed);
        }
    }

    /// As [`Self::want`], for one chunk.
    pub(crate) fn want_chunk(&self, chunk: usize, side: Side) {
        self.wanted[chunk].store(side.code(), Ordering::Relaxed);
    }

    /// Releases the whole pages of a range, whose content is gone; where it was `released`, its wanted tiers are forgotten too.
    pub(crate) fn forget(&self, address: usize, bytes: usize, released: bool) {
        let range = address..address.saturating_add(bytes);
        for page in pool_range::whole(&self.pool, &range, PAGE_BYTES) {
            self.release(page);
            let wanted = &self.wanted_pages[page];
            // Most pages have none, and their bytes stay untouched.
            if released && wanted.load(Ordering::Relaxed) != UNKNOWN {
                wanted.store(UNKNOWN, Ordering::Relaxed);
            }
        }
        if released {
            for wanted in &self.wanted[self.chunks(&range)] {
                wanted.store(UNKNOWN, Ordering::Relaxed);
            }
        }
    }

    /// The tier of a page that holds data. Decides it if that was not done yet.
    pub(crate) fn tier_of(&self, page: usize) -> Side {
        Side::of(self.tiers[page].load(Ordering::Relaxed)).unwrap_or_else(|| self.decide(page))
    }

    /// True where the page's tier is decided.
    pub(crate) fn is_known(&self, page: usize) -> bool {
        self.tiers[page].load(Ordering::Relaxed) != UNKNOWN
    }

    fn decide(&self, page: usize) -> Side {
        let of_page = Side::of(self.wanted_pages[page].load(Ordering::Relaxed));
        let of_chunk = || self.wanted(page / CHUNK_PAGES);
        let wanted = of_page.or_else(of_chunk).unwrap_or(Side::Fast);
        let fits = wanted == Side::Fast && self.fast.take();
        let side = if fits { Side::Fast } else { Side::Slow };
        let before = self.tiers[page].compare_exchange(
            UNKNOWN,
            side.code(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        match before {
            Ok(_) => {
                self.publish(page);
                self.enter(page, side);
                if side == Side::Slow {
                    self.first_touches.fetch_add(1, Ordering::Relaxed);
                    let spills = u64::from(wanted == Side::Fast);
                    self.spilled.fetch_add(spills, Ordering::Relaxed);
                }
                side
            }
            // Another thread decided first.
            Err(other) => {
                if fits {
                    self.fast.return_unused();
                }
                Side::of(other).unwrap_or(side)
            }
        }
    }

    /// Counts a page that is in a tier from now on. Its room in the fast tier was taken.
    fn enter(&self, page: usize, side: Side) {
        if side == Side::Slow {
            self.slow_pages.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.is_static(page) {
            self.fast_static_pages.fetch_add(1, Ordering::Relaxed);
        }
        self.fast.keep(page);
    }

    /// Counts a page that is in this tier no more.
    fn leave(&self, page: usize, side: Side) {
        if side == Side::Slow {
            self.slow_pages.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        if self.is_static(page) {
            self.fast_static_pages.fetch_sub(1, Ordering::Relaxed);
        }
        self.fast.leave(page);
    }

    /// Takes the tier of a page that holds nothing any more.
    pub(crate) fn release(&self, page: usize) {
        if let Some(side) = Side::of(self.tiers[page].swap(UNKNOWN, Ordering::Relaxed)) {
            self.leave(page, side);
            self.publish(page);
        }
    }

    /// Publishes the tier of a page to the observer. Where two threads change one page at a time, the observer sees what the last one
    /// to write here had read; the next look at the chunk corrects what a race left.
    pub(crate) fn publish(&self, page: usize) {
        published_tiers::publish(page, self.tiers[page].load(Ordering::Relaxed));
    }

    /// Publishes the tier of every page that may have one, to a new session, which knows none.
    pub(crate) fn publish_all(&self) {
        let first_static = self.wanted.len() * CHUNK_PAGES;
        let statics = first_static..first_static + self.static_pages();
        for page in (0..self.used_chunks() * CHUNK_PAGES).chain(statics) {
            self.publish(page);
        }
    }

    /// Whether a page is one of a segment.
    fn is_static(&self, page: usize) -> bool {
        page / CHUNK_PAGES >= self.wanted.len()
    }

    /// Bytes of the fast tier that the pool can use: static data has the rest.
    pub(crate) fn fast_room_of_pool(&self) -> u64 {
        let of_segments = self.fast_static_pages.load(Ordering::Relaxed);
        let pages = self.fast.pages_at_most().saturating_sub(of_segments);
        pages.saturating_mul(PAGE_BYTES as u64)
    }

    /// Moves a page to a tier. False where it is there already, holds nothing, or the tier has no room.
    pub(crate) fn migrate(&self, page: usize, to: Side) -> bool {
        let from = match to {
            Side::Fast => Side::Slow,
            Side::Slow => Side::Fast,
        };
        if self.tiers[page].load(Ordering::Relaxed) != from.code()
            || (to == Side::Fast && !self.fast.take())
        {
            return false;
        }
        let moved = self.tiers[page]
            .compare_exchange(from.code(), to.code(), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if moved {
            self.enter(page, to);
            self.leave(page, from);
        } else if to == Side::Fast {
            self.fast.return_unused();
        }
        self.publish(page);
        moved
    }

    /// Bytes in the fast and in the slow tier.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let slow = self.slow_pages.load(Ordering::Relaxed);
        let bytes = |pages: u64| pages * PAGE_BYTES as u64;
        (bytes(self.fast.pages()), bytes(slow))
    }

    /// Pages that were first placed into the slow tier, and those of them for which the fast tier had no room.
    pub(crate) fn first_touches(&self) -> (u64, u64) {
        let count = |pages: &AtomicU64| pages.load(Ordering::Relaxed);
        (count(&self.first_touches), count(&self.spilled))
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, CHUNK_PAGES, PAGE_BYTES, PageTiers, Range, Side, WritablePart};

    const BASE: usize = 1 << 40;

    fn tiers(fast_pages: u64) -> PageTiers {
        let pool = BASE..BASE + 4 * CHUNK_BYTES;
        PageTiers::map(pool, fast_pages * PAGE_BYTES as u64).expect("maps")
    }

    fn bytes(fast: u64, slow: u64) -> (u64, u64) {
        (fast * PAGE_BYTES as u64, slow * PAGE_BYTES as u64)
    }

    #[test]
    fn pages_are_fast_in_the_order_they_are_known_until_the_tier_is_full() {
        let tiers = tiers(3);
        tiers.want(BASE, CHUNK_BYTES, Side::Fast);
        let sides: Vec<Side> = (0..5).map(|page| tiers.tier_of(page)).collect();
        assert_eq!(sides[..3], [Side::Fast; 3]);
        assert_eq!(sides[3..], [Side::Slow; 2]);
        assert_eq!(tiers.bytes(), bytes(3, 2));
        assert_eq!(tiers.first_touches(), (2, 2));
        assert_eq!(tiers.tier_of(4), Side::Slow, "a tier stays");
    }

    #[test]
    fn room_that_is_given_back_is_used_again_and_a_move_respects_it() {
        let tiers = tiers(2);
        tiers.want(BASE, CHUNK_BYTES, Side::Slow);
        assert_eq!(tiers.tier_of(0), Side::Slow);
        assert_eq!(tiers.first_touches(), (1, 0), "it was to be slow");
        assert!(tiers.migrate(0, Side::Fast));
        assert!(!tiers.migrate(0, Side::Fast), "it is there");
        assert!(!tiers.migrate(7, Side::Fast), "it holds nothing");
        tiers.want(BASE + CHUNK_BYTES, CHUNK_BYTES, Side::Fast);
        assert_eq!(tiers.tier_of(512), Side::Fast);
        assert_eq!(tiers.tier_of(1), Side::Slow);
        assert!(!tiers.migrate(1, Side::Fast), "full");
        tiers.forget(BASE + CHUNK_BYTES, CHUNK_BYTES, true);
        assert_eq!(tiers.wanted(1), None);
        assert!(tiers.migrate(1, Side::Fast));
        assert_eq!(tiers.bytes(), bytes(2, 0));
        assert!(tiers.migrate(1, Side::Slow));
        assert_eq!(tiers.bytes(), bytes(1, 1));
    }

    #[test]
    fn static_data_takes_room_as_the_heap_does_and_pages_of_it_can_be_placed() {
        let tiers = tiers(2);
        let segments = [0x5000..0x9000, 0x100_0000..0x130_1000];
        let parts = segments.clone().map(|range| WritablePart {
            range,
            is_of_file: false,
        });
        tiers.set_segments(parts.iter(), Side::Fast);
        let tier_of = |address| tiers.tier_of(tiers.page(address).expect("in a segment"));
        assert_eq!(tiers.page(0x9000), None);
        tiers.want_pages(&(0x6000..0x7000), Side::Fast);
        tiers.want_pages(&(0x120_0000..0x130_1000), Side::Slow);
        assert_eq!(tier_of(0x130_0fff), Side::Slow);
        assert_eq!(tiers.bytes(), bytes(0, 1));
        // One that is placed, one that is not, and one for which no room is left.
        let fast_first = [0x6000, 0x5000, 0x7000].map(tier_of);
        assert_eq!(fast_first, [Side::Fast, Side::Fast, Side::Slow]);
        assert_eq!(tiers.bytes(), bytes(2, 2));
        assert_eq!(tiers.fast_room_of_pool(), 0);
        // One chunk of the first segment, and two of the second, the last of one chunk and a page.
        assert_eq!(tiers.chunks_with_data(), 3);
        let places: Vec<_> = (0..3)
            .map(|nth| tiers.place(tiers.nth_chunk(nth)))
            .collect();
        assert_eq!(places[0], (0x5000, 4));
        assert_eq!(places[1], (0x100_0000, 512));
        assert_eq!(places[2], (0x120_0000, 257));
        tiers.want(BASE, CHUNK_BYTES, Side::Fast);
        assert_eq!(tiers.tier_of(0), Side::Slow, "static data has the room");
        tiers.release(tiers.page(0x5000).expect("in a segment"));
        assert_eq!(tiers.fast_room_of_pool(), PAGE_BYTES as u64);
    }

    #[test]
    fn static_data_moves_as_the_pool_does_and_the_pool_keeps_the_rest_of_the_room() {
        let tiers = tiers(3);
        let parts = [0x5000..0x7000, 0x7000..0x9000].map(|range| WritablePart {
            range,
            is_of_file: false,
        });
        tiers.set_segments(parts.iter(), Side::Slow);
        let pages = |range: Range<usize>| tiers.first_pages_in(&range);
        let first = 4 * CHUNK_PAGES;
        assert_eq!(pages(0x1000..0x5000), None);
        // Two segments side by side have other numbers, and the pool is behind both.
        let (found, end) = pages(0x1000..0x8000).expect("in the first");
        assert_eq!((found, end), (first..first + 2, 0x7000));
        let (found, end) = pages(end..BASE + PAGE_BYTES).expect("in the second");
        let second = first + CHUNK_PAGES;
        assert_eq!((found, end), (second..second + 2, 0x9000));
        assert_eq!(
            pages(end..BASE + PAGE_BYTES),
            Some((0..1, BASE + PAGE_BYTES))
        );
        assert_eq!(tiers.static_pages(), 2 * CHUNK_PAGES);
        for page in [first, first + 1, second] {
            assert_eq!(tiers.tier_of(page), Side::Slow);
            assert!(tiers.migrate(page, Side::Fast));
        }
        assert!(!tiers.migrate(second + 1, Side::Fast), "never touched");
        assert_eq!((tiers.bytes(), tiers.fast_room_of_pool()), (bytes(3, 0), 0));
        assert!(tiers.migrate(first, Side::Slow));
        assert_eq!(tiers.fast_room_of_pool(), PAGE_BYTES as u64);
        assert_eq!(tiers.bytes(), bytes(2, 1));
    }

    #[test]
    fn static_data_that_is_not_placed_is_slow_where_all_data_is() {
        let tiers = tiers(9);
        let part = WritablePart {
            range: 0x5000..0x9000,
            is_of_file: true,
        };
        tiers.set_segments([part].iter(), Side::Slow);
        let page = tiers.page(0x8fff).expect("in the segment");
        assert_eq!(tiers.tier_of(page), Side::Slow);
        assert_eq!(tiers.bytes(), bytes(0, 1));
        assert!(tiers.is_of_file(page / CHUNK_PAGES) && !tiers.is_of_file(0));
        assert!(!tiers.is_placed(page));
        tiers.want_pages(&(0x8000..0x9000), Side::Fast);
        assert!(tiers.is_placed(page));
    }

    #[test]
    fn pages_of_a_part_have_a_tier_of_their_own_until_their_chunk_is_released() {
        let tiers = tiers(2);
        tiers.want(BASE, CHUNK_BYTES, Side::Slow);
        let pages = |from: usize, to: usize| BASE + from * PAGE_BYTES..BASE + to * PAGE_BYTES;
        let sides = || [0, 1, 2, 3].map(|page| tiers.tier_of(page) == Side::Fast);
        assert_eq!(sides(), [false; 4]);
        tiers.want_pages(&pages(1, 4), Side::Fast);
        assert_eq!(sides(), [false, true, true, false], "the last has no room");
        tiers.want_pages(&pages(0, 2), Side::Slow);
        tiers.want_pages(&pages(2, 4), Side::Fast);
        assert_eq!(sides(), [false, false, true, true]);
        assert_eq!(tiers.bytes(), bytes(2, 2));
        tiers.forget(BASE, CHUNK_BYTES, false);
        assert_eq!(sides(), [false, false, true, true]);
        tiers.forget(BASE, CHUNK_BYTES, true);
        tiers.want(BASE, CHUNK_BYTES, Side::Slow);
        assert_eq!(sides(), [false; 4]);
    }

    #[test]
    fn only_whole_pages_of_a_forgotten_range_are_forgotten() {
        let tiers = tiers(9);
        tiers.want(BASE, 2 * CHUNK_BYTES, Side::Fast);
        (0..3).for_each(|page| assert_eq!(tiers.tier_of(page), Side::Fast));
        tiers.forget(BASE + 1, 2 * PAGE_BYTES, false);
        assert!(tiers.is_known(0) && !tiers.is_known(1) && tiers.is_known(2));
        assert_eq!(tiers.page(BASE - 1), None);
        assert_eq!(tiers.page(BASE + 3 * PAGE_BYTES + 5), Some(3));
    }
}
