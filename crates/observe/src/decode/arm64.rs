//! Memory operands of AArch64 instructions.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{
    InstDecoder, Instruction, Opcode, Operand as Arm, ShiftStyle, SizeCode,
};

use super::{Extend, Index, Operand, Step};

/// Walks the instructions of a window of code.
pub(super) struct Steps<'a> {
    decoder: InstDecoder,
    ip: u64,
    code: &'a [u8],
}

impl<'a> Steps<'a> {
    pub(super) fn new(ip: u64, code: &'a [u8]) -> Self {
        Self {
            decoder: InstDecoder::default(),
            ip,
            code,
        }
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let (word, rest) = self.code.split_first_chunk::<4>()?;
        let instruction = self.decoder.decode(&mut U8Reader::new(word)).ok()?;
        let step = Step {
            operand: operand(&instruction, self.ip),
            written: written(&instruction),
            ends_block: ends_block(instruction.opcode),
        };
        self.code = rest;
        self.ip = self.ip.wrapping_add(4);
        Some(step)
    }
}

fn operand(instruction: &Instruction, ip: u64) -> Option<Operand> {
    if matches!(instruction.opcode, Opcode::PRFM | Opcode::PRFUM) {
        return None;
    }
    instruction.operands.iter().find_map(|arm| match *arm {
        Arm::RegPreIndex(base, offset, _) => Some(based(base, i64::from(offset))),
        // The address is the base as it is; it moves on afterwards.
        Arm::RegPostIndex(base, _) | Arm::RegPostIndexReg(base, _) => Some(based(base, 0)),
        Arm::RegRegOffset(base, register, size, style, shift) => Some(Operand {
            index: index(register, size, style, shift),
            ..based(base, 0)
        }),
        // Only a load from a literal pool reads what a relative operand points to.
        Arm::PCOffset(offset) if matches!(instruction.opcode, Opcode::LDR | Opcode::LDRSW) => {
            Some(Operand {
                displacement: ip.wrapping_add(offset as u64),
                ..Operand::default()
            })
        }
        _ => None,
    })
}

/// Register 31 as a base is the stack pointer, which has number 31 in `asm/perf_regs.h` too.
fn based(base: u16, offset: i64) -> Operand {
    Operand {
        base: Some(base as u8),
        displacement: offset as u64,
        ..Operand::default()
    }
}

/// Register 31 as an index is zero.
fn index(register: u16, size: SizeCode, style: ShiftStyle, shift: u8) -> Option<Index> {
    let extend = match (style, size) {
        (ShiftStyle::SXTW, _) => Extend::Sign,
        (ShiftStyle::UXTW, _) | (_, SizeCode::W) => Extend::Zero,
        _ => Extend::No,
    };
    (register < 31).then_some(Index {
        register: register as u8,
        shift,
        extend,
    })
}

/// Registers that an instruction without a memory operand writes: its first operand, as a rule.
/// Where it is a source instead (compares), one register too many is taken for written, which
/// costs a sample and never yields a wrong address.
fn written(instruction: &Instruction) -> u64 {
    match instruction.operands[0] {
        Arm::Register(_, number) if number < 31 => 1 << number,
        Arm::RegisterOrSP(_, number) if number <= 31 => 1 << number,
        Arm::RegisterPair(_, number) if number < 30 => 0b11 << number,
        _ => 0,
    }
}

const fn ends_block(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::B
            | Opcode::Bcc(_)
            | Opcode::BL
            | Opcode::BR
            | Opcode::BLR
            | Opcode::RET
            | Opcode::CBZ
            | Opcode::CBNZ
            | Opcode::TBZ
            | Opcode::TBNZ
            | Opcode::ERET
            | Opcode::SVC
            | Opcode::BRK
            | Opcode::UDF
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Architecture, operand};
    use isotherm_sys::perf::record::Registers;

    const IP: u64 = 0x40_1000;

    /// The address computed from registers that each hold (their own number + 1) times 2^32, less
    /// one in the low word, so that extension shows.
    fn address(code: &[u32]) -> Option<u64> {
        let mut registers = Registers::NONE;
        for number in 0..33 {
            registers.set(number, register(number));
        }
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        operand(Architecture::Arm64, IP, &bytes)?.address(&registers)
    }

    fn register(number: u8) -> u64 {
        (u64::from(number) + 1) << 32 | 0xffff_fffe
    }

    #[test]
    fn every_addressing_mode_yields_its_address() {
        let x1 = register(1);
        let cases: [(u32, u64, &str); 13] = [
            (0xf940_0020, x1, "ldr x0, [x1]"),
            (0xf940_0820, x1 + 16, "ldr x0, [x1, #16]"),
            (0xf85f_8020, x1 - 8, "ldur x0, [x1, #-8]"),
            (0xf840_8c20, x1 + 8, "ldr x0, [x1, #8]!"),
            (0xf840_8420, x1, "ldr x0, [x1], #8"),
            (
                0xf862_7820,
                x1.wrapping_add(register(2) << 3),
                "ldr x0, [x1, x2, lsl #3]",
            ),
            (0xf862_d820, x1 - 16, "ldr x0, [x1, w2, sxtw #3]"),
            (
                0xf862_5820,
                x1 + (0xffff_fffe << 3),
                "ldr x0, [x1, w2, uxtw #3]",
            ),
            (0xa940_0be1, register(31), "ldp x1, x2, [sp]"),
            (0x3d80_0020, x1, "str q0, [x1]"),
            (0x5800_0080, IP + 16, "ldr x0, pc+16"),
            (0xc85f_7c20, x1, "ldxr x0, [x1]"),
            (0xf8e0_0022, x1, "ldaddal x0, x2, [x1]"),
        ];
        for (word, wanted, text) in cases {
            assert_eq!(address(&[word]), Some(wanted), "{text}");
        }
    }

    #[test]
    fn the_next_access_of_the_block_counts_unless_its_registers_change() {
        const ADD_X3: u32 = 0x8b02_0063; // add x3, x3, x2
        const ADD_X1: u32 = 0x8b02_0021; // add x1, x1, x2
        const LDR: u32 = 0xf940_0020; // ldr x0, [x1]
        const CBZ: u32 = 0xb400_0043; // cbz x3, pc+8
        const PRFM: u32 = 0xf980_0020; // prfm pldl1keep, [x1]
        assert_eq!(address(&[ADD_X3, LDR]), Some(register(1)));
        assert_eq!(address(&[ADD_X1, LDR]), None);
        assert_eq!(address(&[CBZ, LDR]), None);
        assert_eq!(address(&[PRFM]), None);
    }
}
