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

/// Has freed memory go back to the kernel soon, and all threads share one heap. To be called before the
/// second thread is started, by a program whose threads seldom allocate at the same time. Does nothing
/// where the C library is another one. Returns false where it refused.
#[must_use]
pub fn keep_little() -> bool {
    #[cfg(target_env = "gnu")]
    {
        let settings = [
            (libc::M_MMAP_THRESHOLD, KEPT_BYTES),
            (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
            (libc::M_ARENA_MAX, 1),
        ];
        // SAFETY: mallopt takes plain numbers, may be called at any time from any thread, and changes
        // only how memory is got and given back from now on.
        settings
            .into_iter()
            .all(|(name, value)| unsafe { libc::mallopt(name, value) } == 1)
    }
    #[cfg(not(target_env = "gnu"))]
    true
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::keep_little;

    #[test]
    fn a_large_block_is_a_mapping_of_its_own_also_after_another_was_freed() {
        assert!(keep_little());
        for _ in 0..3 {
            let block = std::hint::black_box(vec![1_u8; 1 << 20]);
            // The C library keeps 16 bytes in front of a block, and these begin such a mapping.
            let at = block.as_ptr() as usize % rustix::param::page_size();
            assert_eq!(at, 16);
        }
    }
}
