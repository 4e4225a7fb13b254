//! [`Reader`] decodes AArch64 instructions for the search for the access of a sample (`search`): the memory operand, whether it is read or
//! written (of loads and stores as compilers use them, not of atomic ones), the registers that are written, and the next address.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{
    InstDecoder, Instruction, Opcode, Operand as Arm, ShiftStyle, SizeCode,
};

use crate::instruction::{Decode, Extend, Flow, Index, Operand, OperandAccess, Step, Window};

/// Decodes instructions.
#[derive(Default)]
pub(crate) struct Reader {
    decoder: InstDecoder,
}

/// Length of every instruction, in bytes.
const LENGTH: usize = 4;

impl Decode for Reader {
    fn step(&self, code: &[u8], address: u64) -> Option<Step> {
        let word = code.first_chunk::<LENGTH>()?;
        let instruction = self.decoder.decode(&mut U8Reader::new(word)).ok()?;
        Some(Step {
            length: LENGTH,
            operand: operand(&instruction, address),
            written: written(&instruction),
            derivation: None,
            flow: flow(&instruction, address),
        })
    }

    fn previous(&self, _: &Window<'_>, offset: usize) -> Option<usize> {
        offset.checked_sub(LENGTH)
    }

    /// Known for the instructions that compilers use for nearly all accesses; `None` for atomic ones.
    fn operand_access(&self, code: &[u8]) -> Option<OperandAccess> {
        let word = code.first_chunk::<LENGTH>()?;
        let instruction = self.decoder.decode(&mut U8Reader::new(word)).ok()?;
        match instruction.opcode {
            Opcode::LDR
            | Opcode::LDRB
            | Opcode::LDRH
            | Opcode::LDRSB
            | Opcode::LDRSH
            | Opcode::LDRSW
            | Opcode::LDUR
            | Opcode::LDURB
            | Opcode::LDURH
            | Opcode::LDP
            | Opcode::LDNP => Some(OperandAccess::Read),
            opcode if is_store(opcode) => Some(OperandAccess::Write),
            _ => None,
        }
    }
}

fn operand(instruction: &Instruction, ip: u64) -> Option<Operand> {
    if matches!(instruction.opcode, Opcode::PRFM | Opcode::PRFUM) {
        return None;
    }
    instruction.operands.iter().find_map(|arm| match *arm {
        Arm::RegPreIndex(base, offset, _) => Some(based(base, i64::from(offset))),
        // The address is the unchanged base; the base is updated afterwards.
        Arm::RegPostIndex(base, _) | Arm::RegPostIndexReg(base, _) => Some(based(base, 0)),
        Arm::RegRegOffset(base, register, size, style, shift) => Some(Operand {
            index: index(register, size, style, shift),
            ..based(base, 0)
        }),
        // Only a load from a literal pool reads the target of a relative operand.
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
        shift,
        extend,
        ..Index::of(register as u8)
    })
}

/// Registers that an instruction writes: its first operands, as a rule, and the base where it is
/// updated. Where the first operand is a source instead (other stores, some compares), one register
/// too many counts as written, which costs a sample and never yields a wrong address.
fn written(instruction: &Instruction) -> u64 {
    let branches = matches!(
        instruction.opcode,
        Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ
    );
    let only_reads = branches || is_store(instruction.opcode);
    let operands = instruction.operands.iter().enumerate();
    operands.fold(0, |set, (position, operand)| {
        set | match *operand {
            Arm::RegPreIndex(base, _, true)
            | Arm::RegPostIndex(base, _)
            | Arm::RegPostIndexReg(base, _) => 1 << base.min(63),
            _ if only_reads || position > 1 => 0,
            Arm::Register(_, number) if number < 31 => 1 << number,
            Arm::RegisterOrSP(_, number) if number <= 31 && position == 0 => 1 << number,
            Arm::RegisterPair(_, number) if number < 30 => 0b11 << number,
            _ => 0,
        }
    })
}

/// Instructions that store their first operands.
const fn is_store(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::STR
            | Opcode::STRB
            | Opcode::STRH
            | Opcode::STUR
            | Opcode::STURB
            | Opcode::STURH
            | Opcode::STP
            | Opcode::STNP
    )
}

fn flow(instruction: &Instruction, address: u64) -> Flow {
    let target = instruction
        .operands
        .iter()
        .find_map(|operand| match operand {
            Arm::PCOffset(offset) => Some(address.wrapping_add(*offset as u64)),
            _ => None,
        });
    match (instruction.opcode, target) {
        (Opcode::B, Some(target)) => Flow::Jump(target),
        (
            Opcode::Bcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ,
            Some(target),
        ) => Flow::Branch(target),
        (
            Opcode::BL
            | Opcode::BR
            | Opcode::BLR
            | Opcode::RET
            | Opcode::ERET
            | Opcode::SVC
            | Opcode::BRK
            | Opcode::UDF,
            _,
        ) => Flow::Unknown,
        _ => Flow::Next,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Architecture, Registers, Window, access};

    const IP: u64 = 0x40_1000;

    /// The address computed from registers that each hold (their own number + 1) times 2^32, less
    /// one in the low word, so that extension shows.
    fn address(code: &[u32]) -> Option<u64> {
        address_at(code, 0)
    }

    /// As `address`, for a sample at the instruction with this number.
    fn address_at(code: &[u32], at: u64) -> Option<u64> {
        let mut registers = Registers::NONE;
        for number in 0..33 {
            registers.set(number, register(number));
        }
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let window = Window {
            code: &bytes,
            start: IP,
            ip: IP + 4 * at,
        };
        access(Architecture::Arm64, &window)?
            .operand
            .address(&registers)
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

    #[test]
    fn the_access_just_before_comes_first_and_a_chase_yields_the_next_link() {
        const NOP: u32 = 0xd503_201f;
        const LDR: u32 = 0xf940_0020; // ldr x0, [x1]
        const LDR_POST: u32 = 0xf840_8420; // ldr x0, [x1], #8
        const STR: u32 = 0xf900_0021; // str x1, [x1]
        const CHASE: u32 = 0xf940_0021; // ldr x1, [x1]
        const CBNZ_BACK: u32 = 0xb5ff_ffe1; // cbnz x1, pc-4
        assert_eq!(address_at(&[LDR, NOP], 1), Some(register(1)));
        assert_eq!(address_at(&[STR, NOP], 1), Some(register(1)));
        assert_eq!(
            address_at(&[LDR_POST, NOP], 1),
            None,
            "the base has moved on"
        );
        assert_eq!(address_at(&[CHASE, CBNZ_BACK], 1), Some(register(1)));
    }
}
