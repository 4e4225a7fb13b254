//! One decoded instruction: its memory operand, the registers that it writes, and its successor.

use crate::registers::Registers;

/// Extension of a 32-bit index register to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extend {
    /// None: the register has 64 bits.
    No,
    /// Zero extension.
    Zero,
    /// Sign extension.
    Sign,
}

/// An index register of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its number in `asm/perf_regs.h`.
    pub register: u8,
    /// Left shift in bits, after extension.
    pub shift: u8,
    /// Extension of the register.
    pub extend: Extend,
}

/// The computation of a data address: base + (index << shift) + displacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    /// Number of the base register in `asm/perf_regs.h`.
    pub base: Option<u8>,
    /// Index register.
    pub index: Option<Index>,
    /// Added modulo 2^64; the whole address where there are no registers.
    pub displacement: u64,
    /// The address is truncated to 32 bits (x32 and the address-size prefix).
    pub narrow: bool,
}

impl Operand {
    /// The data address, if all registers that it needs are known.
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
    pub(crate) const fn needs_any(&self, set: u64) -> bool {
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

/// The properties of an instruction that the search uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Length in bytes.
    pub(crate) length: usize,
    /// Its memory operand, if it has one that counts.
    pub(crate) operand: Option<Operand>,
    /// Registers it writes, bit n for register n.
    pub(crate) written: u64,
    /// The next instruction.
    pub(crate) flow: Flow,
}

/// The control flow after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// To the instruction after it.
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
    /// The offset of an address in the code.
    pub(crate) fn offset(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (offset < self.code.len()).then_some(offset)
    }
}

/// Decodes instructions of one architecture.
pub(crate) trait Decode {
    /// The instruction at the start of `code`, whose address is `address`.
    fn step(&self, code: &[u8], address: u64) -> Option<Step>;

    /// The start of the instruction before the one at `offset`, if it can be determined.
    fn previous(&self, window: &Window<'_>, offset: usize) -> Option<usize>;
}
