//! The C library's heap, for a program that runs for long and holds little.
//!
//! Left alone, glibc takes freed memory for a sign that more of it is wanted soon: one block of half a
//! megabyte that was freed makes it keep up to a megabyte at the top of the heap for good, and each
//! thread gets a heap of its own.
//!
//! Manual: `mallopt(3)`.

/// Blocks from this size on are mappings of their own, given back when they are freed, and so much may
/// stay free at the top of the heap. These are glibc's values at the start of a program.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 128 << 10;

/// Has freed memory go back to the kernel soon, and all threads share one heap: for a program whose threads
/// seldom allocate at the same time. Does nothing where the C library is another one. Returns false where it
/// refused, or the program has a second thread already, or `/proc` does not tell.
#[must_use]
pub fn keep_little() -> bool {
    #[cfg(target_env = "gnu")]
    {
        let settings = [
            (libc::M_MMAP_THRESHOLD, KEPT_BYTES),
            (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
            (libc::M_ARENA_MAX, 1),
        ];
        let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        // SAFETY: mallopt takes plain numbers and changes only how memory is got and given back from now
        // on. It must not run beside another thread's malloc; it is called where there is no other thread.
        let set = |(name, value)| unsafe { libc::mallopt(name, value) } == 1;
        threads == 1 && settings.into_iter().all(set)
    }
    #[cfg(not(target_env = "gnu"))]
    true
}
