//! From a timer sample to a data address: find the access that the program was at, compute its
//! address from the sampled registers.
//!
//! The interrupt of the timer is taken when the instruction at work has retired. A program that
//! waits for memory is therefore sampled just *behind* the load it waits for: on an EPYC, 93 % of
//! the samples of a loop of random reads fell on the one instruction after the read. So the
//! instruction before the sampled one is looked at first. If it has no operand that counts, or
//! has overwritten the registers of its address (pointer chasing), the next access is searched
//! forward, a few instructions far, as long as it is sure what is executed: within the basic
//! block, through plain jumps, and through the jump back at the end of a loop; and as long as the
//! registers of its address are not written in between. For a chase that yields the next link,
//! which is as good as the last.
//!
//! ```text
//!   add   (%rdx,%rax,8),%r12     <- 1. the access waited for: its registers still hold
//!   sub   $1,%esi                <- sampled here
//!   jne   loop                      2. else forward, here back to the head of the loop
//! ```
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

/// Code before the sampled instruction that is worth having: a loop of this length is seen whole.
pub const BYTES_BEFORE: usize = 256;

/// Code from the sampled instruction on that is worth having.
pub const BYTES_AFTER: usize = 64;

/// Most instructions looked at forward. Eight is two fetch groups of a wide core: further on, the
/// link between the sample and the access is loose.
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
    /// Bytes it is long.
    length: usize,
    /// Its memory operand, if it has one that counts.
    operand: Option<Operand>,
    /// Registers it writes, bit n for register n.
    written: u64,
    /// Where control goes.
    flow: Flow,
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// To the next one.
    Next,
    /// To this address.
    Jump(u64),
    /// To this address or to the next one.
    Branch(u64),
    /// Nobody can say.
    Unknown,
}

/// A piece of code with a sampled instruction in it.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The code.
    pub code: &'a [u8],
    /// Address of its first byte.
    pub start: u64,
    /// Address of the sampled instruction.
    pub ip: u64,
}

impl Window<'_> {
    /// Where an address lies in the code.
    fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (offset < self.code.len()).then_some(offset)
    }
}

/// A way to read instructions.
trait Decode {
    /// The instruction at the start of `code`, which lies at `address`.
    fn step(&mut self, code: &[u8], address: u64) -> Option<Step>;

    /// Where the instruction before the one at `offset` begins, as far as that can be told.
    fn previous(&mut self, window: &Window<'_>, offset: usize) -> Option<usize>;
}

/// Searches the operand of the access that a sample in this code stands for. None: there is none,
/// or it needs registers that were written since.
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

/// The operand of the instruction before, or of the one before that where a compare and a branch
/// that was not taken retire as one.
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
            // Where its address depends on what lies between, so would every later guess.
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
