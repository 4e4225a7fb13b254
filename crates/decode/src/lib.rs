//! Computes the data address of a timer sample: finds the access near the sampled instruction ([`access`]) and evaluates its operand with
//! the sampled registers ([`Operand::address`]); [`operand_access`] says whether an instruction reads or writes. Pure: no I/O, clock,
//! threads, locks or allocation, so that a signal handler can use it.
//!
//! The interrupt of the timer is taken when the current instruction has retired. A program that waits for memory is
//! therefore sampled just *behind* the load it waits for: on an EPYC, 93 % of the samples of a loop of random reads fell
//! on the one instruction after the read. So the instruction before the sampled one is examined first. If it has
//! overwritten a register of its address, up to four instructions before it may say how that was made of registers that still
//! have their values. If they do not (pointer chasing), or if there is no operand that counts, the next access is searched
//! forward over a few instructions, as long as the control flow is certain: within the basic block, through
//! unconditional jumps, and through the backward jump at the end of a loop; and as long as the registers of its address
//! are not written in between. For pointer chasing that yields the next link, which is as good as the last.
//!
//! ```text
//!   add   (%rdx,%rax,8),%r12     <- 1. the slow access: its registers are unchanged
//!   sub   $1,%esi                <- sampled here
//!   jne   loop                      2. else forward, here to the head of the loop
//! ```
//!
//! Operands that count, and operands that do not:
//! - explicit operands, relative to the instruction pointer or the stack included, and the
//!   operands of string instructions: yes (a copy yields its source);
//! - the stack slots of push, pop, call and return: no; they are nearly always in the first-level
//!   cache, and would outnumber all other samples;
//! - operands relative to `fs` or `gs` (thread-local data on x86): no, their base is not sampled;
//! - gathers and scatters: the base with its displacement, without the vector index: the site is
//!   right, the chunk is that of the base;
//! - prefetches, address computations, cache maintenance: no.
//!
//! ```
//! use isotherm_decode::{AccessOrder, Architecture, Registers, Window, access};
//!
//! // nop; nop; mov rax, [rdi+8]; nop, sampled at the last one.
//! let code = [0x90, 0x90, 0x48, 0x8b, 0x47, 0x08, 0x90];
//! let window = Window { code: &code, start: 0x1000, ip: 0x1006 };
//! let found = access(Architecture::X86, &window).unwrap();
//! let mut registers = Registers::NONE;
//! registers.set(5, 0x7000);
//! assert_eq!(found.operand.address(&registers), Some(0x7008));
//! assert_eq!(found.order, AccessOrder::Retired);
//! ```
//!
//! Any bytes may be code here: no input causes a panic.
//!
//! Modules are listed bottom-up: each uses only those above it.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), no_std)]

mod registers;
mod instruction;
mod arm64;
mod x86;
mod search;
#[cfg(all(test, target_arch = "x86_64"))]
mod against_iced_tests;

pub use instruction::{Extend, Index, Operand, OperandAccess, Window};
pub use registers::Registers;
pub use search::{
    AccessOrder, Architecture, BYTES_AFTER, BYTES_BEFORE, NearbyAccess, access, operand_access,
};
