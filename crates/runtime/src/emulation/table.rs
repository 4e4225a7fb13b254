//! [`Table`] is the page table of the emulation by page faults: for each page of the pool a word (its state and the period of its last
//! touch), for each chunk a record ([`Chunk`]: the tier for first touches, the count of touched pages), and the list of the chunks that
//! have touched pages, so that no work grows with the address space of the pool. Changes of a page's tier go to the session file.
//!
//! Any thread may label a chunk and read its record. Only the service thread changes words and
//! the list, so there is no lock.

use core::ops::Range;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

use isotherm_abi::page_tiers::PAGE_EMPTY;
use rustix::io::Errno;
use zerocopy::FromZeros;

use super::page::{PageState, PageWord};
use super::runs::CHUNK_PAGES;
use super::sparse::Sparse;
use crate::published_tiers::{self, Side};

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;
const CHUNK_BYTES: usize = isotherm_abi::CHUNK_BYTES as usize;

/// One chunk.
#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct Chunk {
    /// The tier that first touches request, a byte of [`isotherm_abi::page_tiers`].
    label: AtomicU8,
    /// 1: pages stay at home until the chunk is labelled again.
    settled: AtomicU8,
    /// Pages that are not [`PageState::Untouched`].
    touched: AtomicU16,
    /// Place in the list of chunks with touched pages, plus one; 0 while it is not listed.
    place: AtomicU32,
}

impl Chunk {
    /// The tier that first touches request, while there is room in it; none is treated as the fast tier.
    pub(crate) fn label(&self) -> Option<Side> {
        Side::of(self.label.load(Ordering::Relaxed))
    }

    pub(crate) fn set_label(&self, label: Option<Side>) {
        let code = label.map_or(PAGE_EMPTY, Side::code);
        self.label.store(code, Ordering::Relaxed);
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn set_settled(&self, settled: bool) {
        self.settled.store(u8::from(settled), Ordering::Relaxed);
    }

    pub(crate) fn touched(&self) -> u16 {
        self.touched.load(Ordering::Relaxed)
    }
}

/// The tables of one pool.
pub(crate) struct Table {
    words: Sparse<AtomicU16>,
    chunks: Sparse<Chunk>,
    /// Chunks with touched pages, in no order; only the first `used_count` are valid.
    used: Sparse<AtomicU32>,
    used_count: AtomicU32,
    /// First chunk that was never labelled.
    high: AtomicU32,
}

impl Table {
    /// Maps the tables for a pool of `bytes`.
    pub(crate) fn map(bytes: usize) -> Result<Self, Errno> {
        let chunks = bytes.div_ceil(CHUNK_BYTES);
        Ok(Self {
            words: Sparse::map(chunks * CHUNK_PAGES as usize)?,
            chunks: Sparse::map(chunks)?,
            used: Sparse::map(chunks)?,
            used_count: AtomicU32::new(0),
            high: AtomicU32::new(0),
        })
    }

    /// Pages that the tables describe.
    pub(crate) fn pages(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn chunk(&self, chunk: usize) -> &Chunk {
        &self.chunks[chunk]
    }

    pub(crate) fn chunk_of(&self, page: u32) -> &Chunk {
        &self.chunks[(page / CHUNK_PAGES) as usize]
    }

    /// First chunk that was never labelled: no content is at or above it.
    pub(crate) fn high(&self) -> usize {
        self.high.load(Ordering::Relaxed) as usize
    }

    /// Labels chunks and lets their pages be trapped again.
    pub(crate) fn label(&self, chunks: Range<usize>, label: Side) {
        self.high.fetch_max(chunks.end as u32, Ordering::Relaxed);
        for chunk in &self.chunks[chunks] {
            chunk.set_label(Some(label));
            chunk.set_settled(false);
        }
    }

    pub(crate) fn word(&self, page: u32) -> PageWord {
        PageWord::from_bits(self.words[page as usize].load(Ordering::Relaxed))
    }

    pub(crate) fn state(&self, page: u32) -> PageState {
        self.word(page).state()
    }

    /// Changes a page's word and keeps the chunk's count and the list right. Service thread only.
    pub(crate) fn set_word(&self, page: u32, word: PageWord) {
        let before = self.state(page);
        self.words[page as usize].store(word.bits(), Ordering::Relaxed);
        if before.side() != word.state().side() {
            self.publish(page);
        }
        let (was, is) = (
            before != PageState::Untouched,
            word.state() != PageState::Untouched,
        );
        if was == is {
            return;
        }
        let index = page / CHUNK_PAGES;
        let chunk = &self.chunks[index as usize];
        let touched = chunk.touched();
        if is {
            chunk.touched.store(touched + 1, Ordering::Relaxed);
            if touched == 0 {
                self.list(index);
            }
        } else {
            chunk.touched.store(touched - 1, Ordering::Relaxed);
            if touched == 1 {
                self.unlist(index);
            }
        }
    }

    /// Changes a page's state and keeps its stamp. Service thread only.
    pub(crate) fn set_state(&self, page: u32, state: PageState) {
        self.set_word(page, self.word(page).with(state));
    }

    /// Chunks with touched pages.
    pub(crate) fn used(&self) -> &[AtomicU32] {
        &self.used[..self.used_count.load(Ordering::Relaxed) as usize]
    }

    /// The pages of a chunk.
    pub(crate) fn pages_of(chunk: usize) -> Range<u32> {
        let first = chunk as u32 * CHUNK_PAGES;
        first..first + CHUNK_PAGES
    }

    /// Publishes the tier of a page to the observer.
    pub(crate) fn publish(&self, page: u32) {
        let side = self.state(page).side();
        published_tiers::publish(page as usize, side.map_or(PAGE_EMPTY, Side::code));
    }

    fn list(&self, chunk: u32) {
        let count = self.used_count.load(Ordering::Relaxed);
        self.used[count as usize].store(chunk, Ordering::Relaxed);
        self.chunks[chunk as usize]
            .place
            .store(count + 1, Ordering::Relaxed);
        self.used_count.store(count + 1, Ordering::Relaxed);
    }

    fn unlist(&self, chunk: u32) {
        let last = self.used_count.load(Ordering::Relaxed) - 1;
        let place = self.chunks[chunk as usize].place.swap(0, Ordering::Relaxed) - 1;
        let moved = self.used[last as usize].load(Ordering::Relaxed);
        if moved != chunk {
            self.used[place as usize].store(moved, Ordering::Relaxed);
            self.chunks[moved as usize]
                .place
                .store(place + 1, Ordering::Relaxed);
        }
        self.used_count.store(last, Ordering::Relaxed);
    }

    /// Counts touched pages and rebuilds the list from the words alone, for a forked child: its
    /// copy of the tables may have been taken in the middle of a change.
    pub(crate) fn rebuild(&self) {
        self.used_count.store(0, Ordering::Relaxed);
        for index in 0..self.high() {
            let chunk = &self.chunks[index];
            chunk.place.store(0, Ordering::Relaxed);
            if chunk.touched() == 0 {
                continue;
            }
            let count = Self::pages_of(index)
                .filter(|&page| self.state(page) != PageState::Untouched)
                .count();
            chunk.touched.store(count as u16, Ordering::Relaxed);
            if count > 0 {
                self.list(index as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, Side, Table};
    use crate::emulation::page::{PageState, PageWord};
    use core::sync::atomic::Ordering;

    fn used(table: &Table) -> Vec<u32> {
        let mut list: Vec<u32> = table
            .used()
            .iter()
            .map(|chunk| chunk.load(Ordering::Relaxed))
            .collect();
        list.sort_unstable();
        list
    }

    #[test]
    fn the_list_holds_exactly_the_chunks_with_touched_pages() {
        let table = Table::map(8 * CHUNK_BYTES).expect("map");
        table.label(0..8, Side::Slow);
        for page in [5, 6, 512, 3 * 512] {
            table.set_word(page, PageWord::new(PageState::Slow, 1));
        }
        assert_eq!(used(&table), [0, 1, 3]);
        table.set_state(5, PageState::Untouched);
        table.set_state(512, PageState::Untouched);
        assert_eq!(used(&table), [0, 3]);
        table.set_state(3 * 512, PageState::Away);
        assert_eq!(
            table.chunk(3).touched(),
            1,
            "a change of state is not a touch"
        );
        table.rebuild();
        assert_eq!(used(&table), [0, 3]);
        assert_eq!(table.chunk(0).touched(), 1);
    }

    #[test]
    fn labelling_again_lets_a_settled_chunk_be_trapped() {
        let table = Table::map(2 * CHUNK_BYTES).expect("map");
        table.label(0..1, Side::Fast);
        table.chunk(0).set_settled(true);
        assert_eq!(table.chunk(0).label(), Some(Side::Fast));
        table.label(0..1, Side::Slow);
        assert!(!table.chunk(0).is_settled());
        assert_eq!(table.chunk(0).label(), Some(Side::Slow));
        assert_eq!(table.high(), 1);
    }
}
