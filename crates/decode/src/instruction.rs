//! The types that the decoders of both architectures ([`Decode`]) and the search for accesses share: a [`Step`] is one decoded instruction
//! (its memory operand, the registers that it writes, and the [`Flow`] after it), an [`Operand`] is the computation of a data address from
//! a base register and an [`Index`], a [`Derivation`] says how an instruction made a register of another, so that an address can be found
//! although its register was overwritten, an [`OperandAccess`] is read, write or both, and a [`Window`] is the code around a sample.

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
    /// The shifted index is truncated to 32 bits.
    pub wraps: bool,
}

impl Index {
    /// A register of 64 bits as it is.
    pub(crate) const fn of(register: u8) -> Self {
        Self {
            register,
            shift: 0,
            extend: Extend::No,
            wraps: false,
        }
    }

    /// A register of 64 bits, times a power of two.
    pub(crate) const fn scaled(register: u8, scale: u8) -> Self {
        Self {
            shift: scale.trailing_zeros() as u8,
            ..Self::of(register)
        }
    }

    /// The index in terms of the registers before, as [`Operand::before`], and the constant to add to the address.
    fn before(self, written: &Derivation) -> Option<(Self, u64)> {
        let source = written.source;
        if self.extend == Extend::No && !self.wraps {
            let is_known = !source.wraps || self.shift == 0;
            let shift = source.shift + self.shift;
            // Of a register that is shifted out of 64 bits nothing is left that an operand could say.
            let is_possible = is_known && u32::from(shift) < u64::BITS;
            let add = written.add << self.shift;
            return is_possible.then_some((Self { shift, ..source }, add));
        }
        // Only the lower half of the register counts, and a copy of it has the same.
        let is_copy = source.shift == 0 && written.add == 0 && !source.wraps;
        let index = Self {
            register: source.register,
            ..self
        };
        is_copy.then_some((index, 0))
    }
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
            let shifted = wide.wrapping_shl(u32::from(index.shift));
            address = address.wrapping_add(match index.wraps {
                true => shifted & 0xffff_ffff,
                false => shifted,
            });
        }
        Some(if self.narrow {
            address & 0xffff_ffff
        } else {
            address
        })
    }

    /// The operand of the same address in terms of the registers before an instruction that wrote one of its registers. `None`
    /// where no operand can express it.
    pub(crate) fn before(&self, written: &Derivation) -> Option<Self> {
        let is_base = self.base == Some(written.target);
        let index = self.index.filter(|it| it.register == written.target);
        match (is_base, index) {
            (true, None) if written.is_sum() => Some(Self {
                base: Some(written.source.register),
                displacement: self.displacement.wrapping_add(written.add),
                ..*self
            }),
            (true, None) if self.index.is_none() => Some(Self {
                base: None,
                index: Some(written.source),
                displacement: self.displacement.wrapping_add(written.add),
                ..*self
            }),
            (false, Some(index)) => {
                let (index, add) = index.before(written)?;
                Some(Self {
                    index: Some(index),
                    displacement: self.displacement.wrapping_add(add),
                    ..*self
                })
            }
            _ => None,
        }
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

/// The value that an instruction writes to a general register, in terms of a register before it: `source + add`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Derivation {
    /// The written register.
    pub(crate) target: u8,
    /// The register that it is made of, which may be the same, extended and shifted.
    pub(crate) source: Index,
    /// Added modulo 2^64.
    pub(crate) add: u64,
}

impl Derivation {
    /// Whether it is the sum of a register of 64 bits and a constant.
    fn is_sum(&self) -> bool {
        self.source == Index::of(self.source.register)
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
    /// How it makes the value of the register that it writes, where a `Derivation` can express it.
    pub(crate) derivation: Option<Derivation>,
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

    /// The address of a byte of the code.
    pub(crate) const fn address(&self, offset: usize) -> u64 {
        self.start.wrapping_add(offset as u64)
    }
}

/// What an instruction does with its operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandAccess {
    /// It reads it.
    Read,
    /// It writes it.
    Write,
    /// It reads and writes it.
    ReadWrite,
}

/// Decodes instructions of one architecture.
pub(crate) trait Decode {
    /// The instruction at the start of `code`, whose address is `address`.
    fn step(&self, code: &[u8], address: u64) -> Option<Step>;

    /// The start of the instruction before the one at `offset`, if it can be determined.
    fn previous(&self, window: &Window<'_>, offset: usize) -> Option<usize>;

    /// What the instruction at the start of `code` does with its memory operand; `None` where the decoder does not know.
    fn operand_access(&self, _code: &[u8]) -> Option<OperandAccess> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Derivation, Index, Operand};

    #[test]
    fn an_index_that_is_shifted_out_of_its_register_has_no_operand() {
        let shifted = |shift| Index {
            shift,
            ..Index::of(1)
        };
        let by = |shift| Derivation {
            target: 1,
            source: shifted(shift),
            add: 0,
        };
        let operand = |shift| Operand {
            base: Some(7),
            index: Some(shifted(shift)),
            ..Operand::default()
        };
        assert_eq!(operand(3).before(&by(60)), Some(operand(63)));
        assert_eq!(operand(3).before(&by(61)), None);
        assert_eq!(operand(63).before(&by(63)), None);
    }
}
