//! The macro [`by_caller`] makes the entry shims of `malloc` and `calloc` on x86-64: each jumps directly to a copy of jemalloc (instance)
//! where the runtime passes everything through (to instance 0), or where the table of callers ([`crate::callers`]) knows that all
//! allocations from this return address go to one tier (to the tier's instance); else to the Rust function.
//!
//! ```text
//! malloc, calloc  -->  passing through?  -->  instance 0
//!                 -->  caller known?     -->  its instance ([`crate::callers`])
//!                 -->  the Rust function
//! ```
//!
//! Rust code for the same costs twice the branches and a frame of its own. On other processors the Rust functions
//! look the caller up.

use crate::callers::CallerTiers;
use crate::fast_path::FastPathState;

/// The shim of an allocating function that jumps to the caller's instance if that is known: `name, member of
/// the instance, jemalloc's own, body, registers of the address and the stack`.
macro_rules! by_caller {
    ($name:ident, $member:ident, $plain:path, $body:path, $address:literal, $stack:literal) => {
        #[unsafe(naked)]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "cmp byte ptr [rip + {state}], 0",
                "je {plain}",
                concat!("mov ", $address, ", [rsp]"),
                concat!("mov r8, ", $address),
                "and r8d, {mask}",
                "lea r9, [rip + {known}]",
                concat!("cmp [r9 + r8 * 8 + {address}], ", $address),
                "jne 2f",
                "mov r8, [r9 + r8 * 8 + {instance}]",
                "jmp [r8 + {member}]",
                "2:",
                concat!("lea ", $stack, ", [rsp + 8]"),
                "jmp {body}",
                state = sym $crate::fast_path::HOT,
                plain = sym $plain,
                body = sym $body,
                known = sym $crate::callers::KNOWN,
                mask = const $crate::entry::CALLER_MASK,
                address = const core::mem::offset_of!($crate::callers::CallerTiers, address),
                instance = const core::mem::offset_of!($crate::callers::CallerTiers, instance),
                member = const core::mem::offset_of!($crate::instance::Instance, $member),
            );
        }
    };
}
pub(crate) use by_caller;

/// Bits of a return address that are eight times smaller than the offset of its slot in the table
/// ([`crate::callers`]): the lowest bit is dropped and each slot has 16 bytes.
pub(crate) const CALLER_MASK: usize = (crate::callers::SLOTS - 1) << 1;

const _: () = assert!(size_of::<CallerTiers>() == 16);
const _: () = assert!(core::mem::offset_of!(FastPathState, state) == 0);
