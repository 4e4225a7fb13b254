//! Writes and checks the content of each page, by which the proof detects a lost or torn word.
//!
//! ```text
//! word 0 .. 510   | tag of page and word (24 bits) | sequence number of the write (40 bits) |
//! word 511        | sum of the words before                                                 |
//! ```
//!
//! A writer owns its pages, so it knows the value of each word before it writes the next one: every write is a
//! check. A reader knows which writes were done before it started and which had begun when it ended: a word
//! outside of these is lost, or from elsewhere.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Words of a page.
pub const WORDS: usize = PAGE_BYTES / 8;
const SEQUENCE_BITS: u32 = 40;
const SEQUENCE: u64 = (1 << SEQUENCE_BITS) - 1;

/// The last write of a page's owner.
#[derive(Debug, Default)]
pub struct Progress {
    begun: AtomicU64,
    done: AtomicU64,
}

/// Words checked, and words that were wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Words checked.
    pub words: u64,
    /// Of these, wrong ones.
    pub wrong: u64,
}

impl Count {
    /// Adds another count.
    pub fn add(&mut self, other: Self) {
        self.words += other.words;
        self.wrong += other.wrong;
    }
}

/// The value of word `word` of page `page` after write `sequence`. Never zero, which a lost page holds.
fn value(page: u64, word: usize, sequence: u64) -> u64 {
    let mixed = (page * WORDS as u64 + word as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> SEQUENCE_BITS | 1) << SEQUENCE_BITS | sequence & SEQUENCE
}

/// A page of words that several threads share.
pub type Words = [AtomicU64; WORDS];

/// Writes a page for the first time.
pub fn fill(words: &Words, page: u64) {
    let mut sum = 0_u64;
    for (word, cell) in words[..WORDS - 1].iter().enumerate() {
        let new = value(page, word, 0);
        cell.store(new, Ordering::Relaxed);
        sum = sum.wrapping_add(new);
    }
    words[WORDS - 1].store(sum, Ordering::Release);
}

/// Checks every word of the last write and writes the next. Only the page's owner may.
pub fn check_and_write(words: &Words, page: u64, progress: &Progress) -> Count {
    let last = progress.done.load(Ordering::Relaxed);
    progress.begun.store(last + 1, Ordering::Release);
    let (mut sum, mut old_sum, mut wrong) = (0_u64, 0_u64, 0);
    for (word, cell) in words[..WORDS - 1].iter().enumerate() {
        let old = cell.load(Ordering::Acquire);
        let new = value(page, word, last + 1);
        wrong += u64::from(old != value(page, word, last));
        cell.store(new, Ordering::Release);
        sum = sum.wrapping_add(new);
        old_sum = old_sum.wrapping_add(old);
    }
    let cell = &words[WORDS - 1];
    wrong += u64::from(cell.load(Ordering::Acquire) != old_sum);
    cell.store(sum, Ordering::Release);
    progress.done.store(last + 1, Ordering::Release);
    Count {
        words: WORDS as u64,
        wrong,
    }
}

/// Checks every word while the owner may be writing.
pub fn check(words: &Words, page: u64, progress: &Progress) -> Count {
    let low = progress.done.load(Ordering::Acquire);
    let (mut sum, mut wrong, mut least, mut most) = (0_u64, 0, u64::MAX, 0);
    for (word, cell) in words[..WORDS - 1].iter().enumerate() {
        let seen = cell.load(Ordering::Acquire);
        let sequence = seen & SEQUENCE;
        wrong += u64::from(seen != value(page, word, sequence) || sequence < low);
        (least, most) = (least.min(sequence), most.max(sequence));
        sum = sum.wrapping_add(seen);
    }
    let checksum = words[WORDS - 1].load(Ordering::Acquire);
    fence(Ordering::Acquire);
    let high = progress.begun.load(Ordering::Acquire);
    wrong += u64::from(most > high);
    wrong += u64::from(low == high && (checksum != sum || least != most));
    Count {
        words: WORDS as u64,
        wrong,
    }
}

/// Wrong words of a page in a forked child, whose parent had done write `done` of it before. Calls only
/// functions that are allowed in a child of a program with threads.
pub fn wrong_in_child(words: &Words, page: u64, done: u64) -> u64 {
    let wrong = |(word, cell): (usize, &AtomicU64)| {
        let seen = cell.load(Ordering::Relaxed);
        let sequence = seen & SEQUENCE;
        u64::from(seen != value(page, word, sequence) || sequence < done)
    };
    words[..WORDS - 1].iter().enumerate().map(wrong).sum()
}

impl Progress {
    /// The last write that is complete.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, WORDS, check, check_and_write, fill, wrong_in_child};
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn lost_torn_foreign_and_missing_words_are_all_seen() {
        let words: [AtomicU64; WORDS] = std::array::from_fn(|_| AtomicU64::new(0));
        let progress = Progress::default();
        assert!(check(&words, 3, &progress).wrong > 500, "a page of zeroes");
        fill(&words, 3);
        assert_eq!(check(&words, 3, &progress).wrong, 0);
        let before = words[17].load(Ordering::Relaxed);
        assert_eq!(check_and_write(&words, 3, &progress).wrong, 0);
        words[17].store(before, Ordering::Relaxed);
        assert!(check(&words, 3, &progress).wrong > 0, "a lost write");
        assert_eq!(wrong_in_child(&words, 3, 1), 1);
        assert!(
            check_and_write(&words, 3, &progress).wrong > 0,
            "the writer sees it too"
        );
        assert_eq!(check(&words, 3, &progress).wrong, 0);
        assert!(
            check(&words, 4, &progress).wrong > 500,
            "another page's words"
        );
    }
}
