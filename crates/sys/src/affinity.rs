//! Reads the processors on which a thread may run, or their number (`sched_getaffinity(2)`), up to 65,536 of them (the C library's own type
//! stops at 1,024), and pins the calling thread to one (`sched_setaffinity(2)`).

use std::io;

use crate::system_call::{Errno, call};

/// Bits of a word of a processor mask.
const WORD: usize = 64;
/// Words of a mask: 65,536 processors, eight times those of the largest kernel configuration
/// (`NR_CPUS` 8,192). The kernel refuses a mask that is shorter than its own.
const WORDS_AT_MOST: usize = 1024;

/// Lets the calling thread run on this processor only.
///
/// # Errors
/// The kernel's refusal: `EINVAL` where the processor does not exist or is not allowed to the thread.
pub fn pin(cpu: u32) -> io::Result<()> {
    let mut mask = vec![0_u64; cpu as usize / WORD + 1];
    mask[cpu as usize / WORD] = 1 << (cpu as usize % WORD);
    let address = mask.as_ptr().expose_provenance();
    let arguments = [0, size_of_val(mask.as_slice()), address];
    // SAFETY: the kernel reads as many bytes of the mask as it has; thread 0 is the caller.
    unsafe { call(libc::SYS_sched_setaffinity, arguments) }?;
    Ok(())
}

/// The processors on which the calling thread may run, in order.
///
/// # Errors
/// The kernel's refusal.
pub fn allowed() -> io::Result<Vec<u32>> {
    allowed_to(0)
}

/// The processors on which a thread may run, in order; thread 0 is the caller, and a process's number is that of its first thread.
///
/// # Errors
/// The kernel's refusal: `ESRCH` where the thread has ended, `EINVAL` on a kernel for more than 65,536 processors.
pub fn allowed_to(thread: u32) -> io::Result<Vec<u32>> {
    Ok(processors(&mask_of(thread)?))
}

/// The number of processors on which a thread may run, at least 1, without allocation; thread 0 is the caller, and
/// a process's number is that of its first thread. Takes 8 KiB of stack.
///
/// # Errors
/// The kernel's refusal: `ESRCH` where the thread has ended, `EINVAL` on a kernel for more than 65,536 processors.
pub fn count_allowed_to(thread: u32) -> Result<usize, Errno> {
    let mask = mask_of(thread)?;
    Ok(mask.iter().map(|word| word.count_ones() as usize).sum())
}

/// The mask of a thread, as [`count_allowed_to`] counts it.
fn mask_of(thread: u32) -> Result<[u64; WORDS_AT_MOST], Errno> {
    let mut mask = [0_u64; WORDS_AT_MOST];
    let address = mask.as_mut_ptr().expose_provenance();
    let arguments = [thread as usize, size_of_val(&mask), address];
    // SAFETY: the kernel writes at most as many bytes as the mask has, and nothing else. It leaves the words behind
    // its own mask as they are: zero.
    unsafe { call(libc::SYS_sched_getaffinity, arguments) }?;
    Ok(mask)
}

fn processors(mask: &[u64]) -> Vec<u32> {
    let is_set = |bit: &u32| mask[*bit as usize / WORD] >> (*bit as usize % WORD) & 1 == 1;
    (0..(mask.len() * WORD) as u32).filter(is_set).collect()
}

#[cfg(test)]
mod tests {
    use super::{allowed, count_allowed_to, pin, processors};

    #[test]
    fn a_pinned_thread_runs_where_it_was_put_and_others_stay_free() {
        let before = allowed().unwrap();
        let last = *before.last().expect("a thread runs somewhere");
        let pinned = std::thread::spawn(move || {
            pin(last).unwrap();
            (allowed().unwrap(), count_allowed_to(0))
        });
        assert_eq!(pinned.join().unwrap(), (vec![last], Ok(1)));
        assert_eq!(allowed().unwrap(), before);
        assert_eq!(count_allowed_to(0), Ok(before.len()));
    }

    #[test]
    fn a_processor_that_is_not_there_is_an_error() {
        let answer = std::thread::spawn(|| pin(1 << 20)).join().unwrap();
        assert_eq!(answer.unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn bits_beyond_the_first_word_are_read() {
        assert_eq!(processors(&[1, 1 << 63, 0, 2]), [0, 127, 193]);
    }
}
