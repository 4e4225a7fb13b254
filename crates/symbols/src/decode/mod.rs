//! Computes the data address of a timer sample, for [`crate::code`]: finds the access near the
//! sampled instruction and evaluates its operand with the sampled registers.
//!
//! The interrupt of the timer is taken when the current instruction has retired. A program that
//! waits for memory is therefore sampled just *behind* the load it waits for: on an EPYC, 93 % of
//! the samples of a loop of random reads fell on the one instruction after the read. So the
//! instruction before the sampled one is examined first. If it has no operand that counts, or has
//! overwritten the registers of its address (pointer chasing), the next access is searched forward
//! over a few instructions, as long as the control flow is certain: within the basic block, through
//! unconditional jumps, and through the backward jump at the end of a loop; and as long as the
//! registers of its address are not written in between. For pointer chasing that yields the next
//! link, which is as good as the last.
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

pub mod arm64;
mod instruction;
pub mod x86;

use instruction::{Decode, Flow};

pub use instruction::{Extend, Index, Operand, Window};

/// Bytes of code read before the sampled instruction: a loop of this length fits.
pub const BYTES_BEFORE: usize = 256;

/// Bytes of code read from the sampled instruction on.
pub const BYTES_AFTER: usize = 64;

/// Most instructions searched forward. Eight is two fetch groups of a wide core: further on, the
/// link between the sample and the access is weak.
const INSTRUCTIONS_FORWARD: usize = 8;

/// A processor architecture that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64, in 64-bit mode.
    X86,
    /// AArch64.
    Arm64,
}

impl Architecture {
    /// The architecture of this program.
    pub const HERE: Self = if cfg!(target_arch = "aarch64") {
        Self::Arm64
    } else {
        Self::X86
    };
}

/// Finds the operand of the access that a sample in this code represents. None: there is none, or
/// it needs registers that were written since.
#[must_use]
pub fn operand(architecture: Architecture, window: &Window<'_>) -> Option<Operand> {
    match architecture {
        Architecture::X86 => search(&mut x86::Reader::default(), window),
        Architecture::Arm64 => search(&mut arm64::Reader::default(), window),
    }
}

fn search(reader: &mut impl Decode, window: &Window<'_>) -> Option<Operand> {
    backward(reader, window).or_else(|| forward(reader, window))
}

/// The operand of the instruction before, or of the one before that if a compare and an untaken
/// branch retire as one.
fn backward(reader: &mut impl Decode, window: &Window<'_>) -> Option<Operand> {
    let mut written = 0;
    let mut offset = window.offset(window.ip)?;
    for _ in 0..2 {
        offset = reader.previous(window, offset)?;
        let step = reader.step(
            &window.code[offset..],
            window.start.wrapping_add(offset as u64),
        )?;
        written |= step.written;
        match (step.operand, step.flow) {
            (Some(operand), Flow::Next) => {
                return Some(operand).filter(|it| !it.needs_any(written));
            }
            (None, Flow::Branch(_)) => {}
            _ => return None,
        }
    }
    None
}

fn forward(reader: &mut impl Decode, window: &Window<'_>) -> Option<Operand> {
    let mut written = 0;
    let mut address = window.ip;
    for _ in 0..INSTRUCTIONS_FORWARD {
        let offset = window.offset(address)?;
        let step = reader.step(&window.code[offset..], address)?;
        if let Some(operand) = step.operand {
            // If its address depends on instructions in between, so does every later candidate.
            return Some(operand).filter(|it| !it.needs_any(written));
        }
        written |= step.written;
        let next = address.wrapping_add(step.length as u64);
        address = match step.flow {
            Flow::Next => next,
            Flow::Jump(target) => target,
            // A branch back closes a loop and is taken nearly always.
            Flow::Branch(target) if target < address => target,
            Flow::Branch(_) | Flow::Unknown => return None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Architecture, Window, operand};
    use proptest::prelude::{any, prop};

    proptest::proptest! {
        #[test]
        fn no_code_makes_a_decoder_panic(start in any::<u64>(), at in 0u64..100, code in prop::collection::vec(any::<u8>(), 0..100)) {
            for architecture in [Architecture::X86, Architecture::Arm64] {
                let ip = start.wrapping_add(at);
                let _ = operand(architecture, &Window { code: &code, start, ip });
            }
        }
    }
}
