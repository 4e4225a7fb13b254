//! From a timer sample to a data address: decode the instruction at the sample, compute its
//! memory operand from the sampled registers.
//!
//! The timer stops the program *before* the instruction at the sampled address has retired, so
//! the registers are those that its operand is computed from. An instruction without a memory
//! operand that says something is passed over, a few times, as long as control cannot leave the
//! basic block and the registers of the operand found later are not written in between.
//!
//! What counts and what does not:
//! - explicit operands, relative to the instruction pointer or the stack included, and the
//!   operands of string instructions: yes (a copy yields its source);
//! - the stack slots of push, pop, call and return: no; they are nearly always in the first-level
//!   cache, and would drown what is worth knowing;
//! - operands relative to `fs` or `gs` (thread-local data on x86): no, their base is not sampled;
//! - gathers and scatters: the base with its displacement, without the vector index: the site is
//!   right, the chunk is that of the base;
//! - prefetches, address computations, cache maintenance: no.

pub mod arm64;
pub mod x86;

use isotherm_sys::perf::record::Registers;

/// The bytes of code to hand to [`operand`] where there are so many.
pub const WINDOW_BYTES: usize = 64;

/// Most instructions looked at, the first included. Eight is two fetch groups of a wide core:
/// further on, the link between the sample and the access is loose.
const WINDOW_INSTRUCTIONS: usize = 8;

/// A processor architecture that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64, in 64-bit mode.
    X86,
    /// AArch64.
    Arm64,
}

impl Architecture {
    /// The one this program runs on.
    pub const HERE: Self = if cfg!(target_arch = "aarch64") {
        Self::Arm64
    } else {
        Self::X86
    };
}

/// How a 32-bit index register becomes 64 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extend {
    /// It is 64 bits wide.
    No,
    /// By zeros.
    Zero,
    /// By its sign.
    Sign,
}

/// An index register of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its number in `asm/perf_regs.h`.
    pub register: u8,
    /// How far it is shifted to the left, after extension.
    pub shift: u8,
    /// How it is widened.
    pub extend: Extend,
}

/// How an instruction computes its data address: base + (index << shift) + displacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    /// Number of the base register in `asm/perf_regs.h`.
    pub base: Option<u8>,
    /// Index register.
    pub index: Option<Index>,
    /// Added modulo 2^64; the whole address where there are no registers.
    pub displacement: u64,
    /// The address is cut to 32 bits (x32 and the address-size prefix).
    pub narrow: bool,
}

impl Operand {
    /// The data address, where all registers that it needs are known.
    #[must_use]
    pub fn address(&self, registers: &Registers) -> Option<u64> {
        let mut address = self.displacement;
        if let Some(base) = self.base {
            address = address.wrapping_add(registers.get(base)?);
        }
        if let Some(index) = self.index {
            let value = registers.get(index.register)?;
            let wide = match index.extend {
                Extend::No => value,
                Extend::Zero => u64::from(value as u32),
                Extend::Sign => value as i32 as i64 as u64,
            };
            address = address.wrapping_add(wide.wrapping_shl(u32::from(index.shift)));
        }
        Some(if self.narrow {
            address & 0xffff_ffff
        } else {
            address
        })
    }

    /// True where one of the registers is in a set (bit n: register n).
    const fn needs_any(&self, set: u64) -> bool {
        let base = match self.base {
            Some(register) => 1 << register,
            None => 0,
        };
        let index = match self.index {
            Some(index) => 1 << index.register,
            None => 0,
        };
        (base | index) & set != 0
    }
}

/// What one instruction means for the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Its memory operand, if it has one that counts.
    operand: Option<Operand>,
    /// Registers it writes, bit n for register n.
    written: u64,
    /// Control may go elsewhere after it.
    ends_block: bool,
}

/// Searches the operand of the instruction at `ip`, or of one of the next, in the code found
/// there. None: there is none, or it needs registers that are written before.
#[must_use]
pub fn operand(architecture: Architecture, ip: u64, code: &[u8]) -> Option<Operand> {
    match architecture {
        Architecture::X86 => search(x86::Steps::new(ip, code)),
        Architecture::Arm64 => search(arm64::Steps::new(ip, code)),
    }
}

fn search(steps: impl Iterator<Item = Step>) -> Option<Operand> {
    let mut written = 0;
    for step in steps.take(WINDOW_INSTRUCTIONS) {
        match step.operand {
            Some(operand) if !operand.needs_any(written) => return Some(operand),
            // Its address depends on what lies between; so would every later guess.
            Some(_) => return None,
            None if step.ends_block => return None,
            None => written |= step.written,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Architecture, operand};
    use proptest::prelude::{any, prop};

    proptest::proptest! {
        #[test]
        fn no_code_makes_a_decoder_panic(ip in any::<u64>(), code in prop::collection::vec(any::<u8>(), 0..80)) {
            for architecture in [Architecture::X86, Architecture::Arm64] {
                let _ = operand(architecture, ip, &code);
            }
        }
    }
}
