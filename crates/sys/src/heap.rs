//! [`keep_little`] makes the C library's heap keep little free memory (`mallopt`), for a program that runs for long: the daemon.
//!
//! By default, glibc treats freed memory as a sign that more is needed soon: one freed block of half a megabyte
//! makes it keep up to a megabyte at the top of the heap for good, and each thread gets its own heap.
//!
//! Manual: `mallopt(3)`.

/// Blocks from this size on are separate mappings, released when they are freed, and this much may stay free at
/// the top of the heap. These are glibc's values at the start of a program.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 128 << 10;

/// Makes freed memory return to the kernel soon, and all threads share one heap: for a program whose threads
/// rarely allocate at the same time. Does nothing with another C library. Returns false where it refused, or
/// the program has a second thread already, or `/proc` cannot be read.
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
        // SAFETY: mallopt takes plain numbers and changes only how memory is obtained and released from now on.
        // It must not run beside another thread's malloc; it is called where there is no other thread.
        let set = |(name, value)| unsafe { libc::mallopt(name, value) } == 1;
        threads == 1 && settings.into_iter().all(set)
    }
    #[cfg(not(target_env = "gnu"))]
    true
}
