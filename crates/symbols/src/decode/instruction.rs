//! One decoded instruction: its memory operand, the registers that it writes, and where control goes after it.

use isotherm_sys::perf::record::Registers;

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
    pub(super) const fn needs_any(&self, set: u64) -> bool {
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
pub(super) struct Step {
    /// Bytes it is long.
    pub(super) length: usize,
    /// Its memory operand, if it has one that counts.
    pub(super) operand: Option<Operand>,
    /// Registers it writes, bit n for register n.
    pub(super) written: u64,
    /// Where control goes.
    pub(super) flow: Flow,
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the next one.
    Next,
    /// To this address.
    Jump(u64),
    /// To this address or to the next one.
    Branch(u64),
    /// To an address that the instruction alone does not give.
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
    pub(super) fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (offset < self.code.len()).then_some(offset)
    }
}

/// A way to read instructions.
pub(super) trait Decode {
    /// The instruction at the start of `code`, which lies at `address`.
    fn step(&mut self, code: &[u8], address: u64) -> Option<Step>;

    /// Where the instruction before the one at `offset` begins, as far as that can be told.
    fn previous(&mut self, window: &Window<'_>, offset: usize) -> Option<usize>;
}
