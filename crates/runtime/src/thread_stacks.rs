//! [`hold`] tells whether a range of memory overlaps the stack of a living thread other than the first, so that the program may not name
//! it or have it moved ([`crate::memory_kind`]). It finds a stack by the thread's list of robust mutexes, and by what was noted when the
//! thread was made: a stack that the program brought ([`note_own`]), or the size of one of the C library's ([`note_bytes`]).
//!
//! The kernel lists the threads, and for each the address of its list of robust mutexes ([`isotherm_sys::robust_list`]), which the GNU C
//! library keeps in the thread's own block, at the end of its stack. The kernel does not say where the stack begins:
//!
//! ```text
//! the C library's stack   | guard |   largest size that was asked for   | list |      the mapping begins behind the guard
//! the program's own                          |  as the program gave it  | list |
//! ```
//!
//! Of the C library's stacks the largest size is kept, of the program's own the latest stacks. A thread that the program makes by its own
//! `clone`, without a list, is not known. The first thread's stack has a name in the kernel's list of mappings.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use isotherm_sys::robust_list::robust_list;
use rustix::fs::{Mode, OFlags, RawDir};

use crate::sandbox;

/// Most stacks of the program's own that are kept. A stack that is not kept counts as one of the largest size.
const OWN_STACKS: usize = 256;

/// Bytes of the entries of `/proc/self/task` that are read at a time.
const ENTRIES_BYTES: usize = 2048;

/// A stack that the program gave to a thread. Its words are written without a lock: a stack that two threads write at a time may have the
/// start of one and the end of the other, and then holds the list of neither.
struct OwnStack {
    start: AtomicUsize,
    end: AtomicUsize,
}

impl OwnStack {
    fn range(&self) -> Range<usize> {
        self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)
    }
}

static OWN: [OwnStack; OWN_STACKS] = [const {
    OwnStack {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
    }
}; OWN_STACKS];
/// The number of the next one, in the order of the threads.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the largest stack that the program asked the C library for.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Notes that the program gives this memory to a thread as its stack.
pub(crate) fn note_own(stack: Range<usize>) {
    if OWN.iter().any(|known| known.range() == stack) {
        return;
    }
    let place = &OWN[NEXT.fetch_add(1, Ordering::Relaxed) % OWN_STACKS];
    place.end.store(0, Ordering::Relaxed);
    place.start.store(stack.start, Ordering::Relaxed);
    place.end.store(stack.end, Ordering::Relaxed);
}

/// Notes that the program asks the C library for a stack of this size.
pub(crate) fn note_bytes(bytes: usize) {
    LARGEST.fetch_max(bytes, Ordering::Relaxed);
}

/// Whether a part of a range, not empty, is the stack of a living thread. The mapping with the range's last byte ends at
/// `mapping_end`. False where the threads cannot be listed, or a filter may end the program for the calls that this takes.
pub(crate) fn hold(range: &Range<usize>, mapping_end: usize) -> bool {
    if sandbox::is_filtered() {
        return false;
    }
    let opened = rustix::fs::open(
        c"/proc/self/task",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    );
    let Ok(tasks) = opened else { return false };
    let largest = LARGEST.load(Ordering::Relaxed).max(usual_bytes());
    let own = || OWN.iter().map(OwnStack::range);
    let first = rustix::process::getpid().as_raw_nonzero().get() as u32;
    let mut bytes = [MaybeUninit::uninit(); ENTRIES_BYTES];
    let mut entries = RawDir::new(tasks, &mut bytes);
    while let Some(Ok(entry)) = entries.next() {
        let thread = number(entry.file_name()).filter(|thread| *thread != first);
        // A thread that has ended meanwhile has no stack.
        let list = thread.and_then(|thread| robust_list(thread).ok());
        if list.is_some_and(|list| is_within(range, (list, mapping_end), own(), largest)) {
            return true;
        }
    }
    false
}

/// Whether a part of a range is on the stack whose thread has its list here.
fn is_within(
    range: &Range<usize>,
    (list, mapping_end): (usize, usize),
    own: impl Iterator<Item = Range<usize>>,
    largest: usize,
) -> bool {
    let mut holding = own.filter(|stack| stack.contains(&list)).peekable();
    if holding.peek().is_some() {
        return holding.any(|stack| stack.start < range.end && range.start < stack.end);
    }
    // Behind the list the C library keeps the rest of the thread's block, to the end of its page at least.
    let end = list.next_multiple_of(rustix::param::page_size());
    let is_in_last_mapping = list < mapping_end;
    list != 0 && is_in_last_mapping && range.start < end && list - largest.min(list) < range.end
}

/// Bytes of a stack of the C library's for which the program named no size.
fn usual_bytes() -> usize {
    let mut attributes = MaybeUninit::uninit();
    let mut bytes = 0;
    // SAFETY: the attributes are initialised before they are read, and destroyed once.
    unsafe {
        if libc::pthread_attr_init(attributes.as_mut_ptr()) == 0 {
            // An error leaves 0, and then the guard alone says where a stack begins.
            let _ = libc::pthread_attr_getstacksize(attributes.as_ptr(), &raw mut bytes);
            let _ = libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
    }
    bytes
}

/// The number that a name is, if it is one.
fn number(name: &CStr) -> Option<u32> {
    core::str::from_utf8(name.to_bytes()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use core::ops::Range;
    use std::sync::mpsc::channel;

    use super::{OWN_STACKS, hold, is_within, note_own};

    const PAGE: usize = 4096;

    /// Whether these pages are on a stack of 8 pages whose list is in page 19, of a mapping that ends behind page `end`.
    fn pages(range: Range<usize>, end: usize, own: &[Range<usize>]) -> bool {
        let own = own.iter().map(|own| own.start * PAGE..own.end * PAGE);
        let range = range.start * PAGE..range.end * PAGE;
        is_within(&range, (19 * PAGE + 100, end * PAGE), own, 8 * PAGE)
    }

    #[test]
    fn a_stack_of_the_c_library_reaches_down_by_its_largest_size_and_not_up() {
        assert!(pages(19..20, 20, &[]) && pages(12..13, 20, &[]) && pages(2..30, 30, &[]));
        assert!(!pages(2..11, 20, &[]), "below the largest stack");
        assert!(!pages(20..25, 40, &[]), "mapped behind the stack");
        assert!(!pages(12..13, 14, &[]), "a guard is between");
    }

    #[test]
    fn a_stack_of_the_program_is_as_the_program_gave_it() {
        let own = [15..20, 40..60];
        assert!(pages(15..16, 20, &own) && pages(2..16, 20, &own));
        assert!(!pages(12..15, 20, &own) && !pages(40..50, 60, &own));
    }

    #[test]
    fn a_thread_that_lives_has_a_stack_and_more_own_stacks_than_are_kept_replace_the_oldest() {
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let variables = [0_u8; 64];
            let _ = tell.send(variables.as_ptr().addr());
            let _ = ended.recv();
        });
        let variables = told.recv().expect("the thread runs");
        let is_held = hold(&(variables..variables + 64), usize::MAX);
        for number in 0..2 * OWN_STACKS {
            note_own(PAGE * number..PAGE * number + 1);
        }
        let is_still_held = hold(&(variables..variables + 64), usize::MAX);
        drop(end);
        thread.join().expect("no panic");
        assert!(is_held && is_still_held);
        assert!(!hold(&(PAGE..2 * PAGE), 2 * PAGE));
    }
}
