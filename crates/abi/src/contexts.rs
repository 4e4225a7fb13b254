//! Describes the section that `isotherm-cc` writes at the link into a program whose allocation sites are distinguished by their calling
//! contexts: the sizes of its records, by which the tools read the contexts from the program's file. [`longer`] makes the name of a context
//! from that of the context with one call less. `llvm/sites/isotherm_contexts.h` explains the numbers and asserts the same layout.
//!
//! All words are of 32 bits. The header is followed by six arrays, in the order of the header's counts: calls in the
//! source ([`CALL_BYTES`]), lists of them, functions, calls in the program, their first numbers, allocations.

/// Version of the table.
pub const VERSION: u32 = 1;

/// The section of the table.
pub const SECTION: &str = "isotherm_contexts";

/// Most calls around an allocation.
pub const LEVELS_MAX: usize = 6;

/// Marks a function whose callers are not distinguished.
pub const NONE: u32 = u32::MAX;

/// Words of the header.
pub const HEADER_WORDS: usize = 10;
/// Bytes of a call in the source.
pub const CALL_BYTES: usize = 24;
/// Words of a function: first call, calls, whether a context may begin here.
pub const FUNCTION_WORDS: usize = 3;
/// Words of a call in the program: caller, first of its list, length of its list.
pub const PROGRAM_CALL_WORDS: usize = 3;
/// Words of an allocation: first record, function, level, first of its list, length of its list, place of the site.
pub const ALLOCATION_WORDS: usize = 6;

/// The name of a context that is one call longer than the context named `id`; the shortest is named as the site.
#[must_use]
pub const fn longer(id: u64, call: u64) -> u64 {
    let hash = (id.rotate_left(7) ^ call).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = hash ^ (hash >> 32);
    if hash > 1 { hash } else { hash + 2 }
}
