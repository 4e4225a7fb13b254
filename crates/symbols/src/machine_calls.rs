//! Finds the call instructions in machine code of x86-64 and aarch64, each with its return address and target, and the pointer through
//! which a linker stub jumps: from these [`crate::calls`] tells which functions a function calls.

use object::Architecture;
use yaxpeax_arch::LengthedInstruction;
use yaxpeax_x86::long_mode::{InstDecoder, Instruction, Opcode, Operand, RegSpec};

/// Most bytes of a linker stub.
pub(crate) const STUB_BYTES: u64 = 16;

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A function at this address.
    Code(u64),
    /// The function to which the pointer at this address points.
    Pointer(u64),
    /// A function whose address is in a register, or in memory that registers address.
    Unknown,
}

/// A call instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineCall {
    /// Address of the next instruction.
    pub(crate) returns_to: u64,
    pub(crate) target: Target,
}

/// The calls in the code of a function, in the order of addresses; none for other architectures.
pub(crate) fn calls(architecture: Architecture, code: &[u8], start: u64) -> Vec<MachineCall> {
    match architecture {
        Architecture::X86_64 => calls_x86(code, start),
        Architecture::Aarch64 => calls_aarch64(code, start),
        _ => Vec::new(),
    }
}

/// The pointer through which a linker stub jumps.
pub(crate) fn stub(architecture: Architecture, code: &[u8], start: u64) -> Option<u64> {
    match architecture {
        Architecture::X86_64 => stub_x86(code, start),
        Architecture::Aarch64 => stub_aarch64(code, start),
        _ => None,
    }
}

fn calls_x86(code: &[u8], start: u64) -> Vec<MachineCall> {
    let call = |(next, instruction): (u64, Instruction)| {
        let called = match instruction.opcode() {
            Opcode::CALL => instruction.operand(0),
            _ => return None,
        };
        Some(MachineCall {
            returns_to: next,
            target: match called {
                Operand::ImmediateI32 { imm } => {
                    Target::Code(next.wrapping_add_signed(i64::from(imm)))
                }
                memory => pointer_x86(memory, next).map_or(Target::Unknown, Target::Pointer),
            },
        })
    };
    instructions_x86(code, start).filter_map(call).collect()
}

/// Matches `endbr64` or nothing, then `jmp *pointer(%rip)`.
fn stub_x86(code: &[u8], start: u64) -> Option<u64> {
    let (next, jump) = instructions_x86(code, start)
        .take(2)
        .find(|(_, instruction)| instruction.opcode() != Opcode::ENDBR64)?;
    (jump.opcode() == Opcode::JMP)
        .then(|| pointer_x86(jump.operand(0), next))
        .flatten()
}

/// Instructions, each with the address of the next one. Bytes that are none are skipped one by one.
fn instructions_x86(code: &[u8], start: u64) -> impl Iterator<Item = (u64, Instruction)> {
    let decoder = InstDecoder::default();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < code.len() {
            let decoded = decoder.decode_slice(&code[at..]);
            at += decoded.map_or(1, |instruction| instruction.len().to_const() as usize);
            if let Ok(instruction) = decoded {
                return Some((start.wrapping_add(at as u64), instruction));
            }
        }
        None
    })
}

/// The address of an operand in memory that is relative to the instruction pointer.
fn pointer_x86(operand: Operand, next: u64) -> Option<u64> {
    match operand {
        Operand::Disp { base, disp } if base == RegSpec::rip() => {
            Some(next.wrapping_add_signed(i64::from(disp)))
        }
        _ => None,
    }
}

/// The instruction words of a little-endian machine and their addresses.
fn words(code: &[u8], start: u64) -> impl Iterator<Item = (u64, u32)> {
    let words = code
        .chunks_exact(4)
        .map(|bytes| bytes.try_into().map_or(0, u32::from_le_bytes));
    (start..).step_by(4).zip(words)
}

fn calls_aarch64(code: &[u8], start: u64) -> Vec<MachineCall> {
    let call = |(address, word): (u64, u32)| {
        let target = match (word & 0xfc00_0000, word & 0xffff_fc1f) {
            // `bl`: a signed offset of 26 bits, in words.
            (0x9400_0000, _) => {
                let words = (word << 6).cast_signed() >> 6;
                Target::Code(address.wrapping_add_signed(4 * i64::from(words)))
            }
            // `blr`.
            (_, 0xd63f_0000) => Target::Unknown,
            _ => return None,
        };
        Some(MachineCall {
            returns_to: address + 4,
            target,
        })
    };
    words(code, start).filter_map(call).collect()
}

/// Matches `bti` or nothing, `adrp x16, page`, `ldr x17, [x16, offset]`, ...
fn stub_aarch64(code: &[u8], start: u64) -> Option<u64> {
    let found: Vec<(u64, u32)> = words(code, start).collect();
    found.windows(2).take(2).find_map(|pair| {
        let ((address, adrp), (_, load)) = (pair[0], pair[1]);
        if adrp & 0x9f00_001f != 0x9000_0010 || load & 0xffc0_03ff != 0xf940_0211 {
            return None;
        }
        // A signed offset of 21 bits, the two lowest of them separate, in pages.
        let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
        let pages = i64::from((pages << 11).cast_signed() >> 11);
        let page = (address & !0xfff).wrapping_add_signed(pages << 12);
        Some(page + 8 * u64::from(load >> 10 & 0xfff))
    })
}

#[cfg(test)]
mod tests {
    use super::{MachineCall, Target, calls, stub};
    use object::Architecture::{Aarch64, X86_64};

    #[test]
    fn calls_of_x86_are_told_by_where_they_lead() {
        let code = [
            0xe8, 0x0b, 0x00, 0x00, 0x00, // call 0x1010
            0xff, 0x15, 0x00, 0x10, 0x00, 0x00, // call *0x1000(%rip)
            0xff, 0xd0, // call *%rax
            0xe9, 0x00, 0x00, 0x00, 0x00, // jmp
        ];
        let call = |returns_to, target| MachineCall { returns_to, target };
        let wanted = [
            call(0x1005, Target::Code(0x1010)),
            call(0x100b, Target::Pointer(0x200b)),
            call(0x100d, Target::Unknown),
        ];
        assert_eq!(calls(X86_64, &code, 0x1000), wanted);
    }

    #[test]
    fn stubs_of_x86_jump_through_a_pointer() {
        let plain = [0xff, 0x25, 0x02, 0x10, 0x00, 0x00, 0x66, 0x90];
        assert_eq!(stub(X86_64, &plain, 0x1000), Some(0x2008));
        let marked = [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x02, 0x10, 0x00, 0x00];
        assert_eq!(stub(X86_64, &marked, 0x1000), Some(0x200c));
        assert_eq!(stub(X86_64, &[0x55, 0x48, 0x89, 0xe5], 0x1000), None);
        assert_eq!(stub(X86_64, &[], 0x1000), None);
    }

    #[test]
    fn calls_and_stubs_of_aarch64_are_read() {
        let code = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        // bl .+8; bl .-4; blr x1; ret
        let found = calls(
            Aarch64,
            &code(&[0x9400_0002, 0x97ff_ffff, 0xd63f_0020, 0xd65f_03c0]),
            0x1000,
        );
        let call = |returns_to, target| MachineCall { returns_to, target };
        let wanted = [
            call(0x1004, Target::Code(0x1008)),
            call(0x1008, Target::Code(0x1000)),
            call(0x100c, Target::Unknown),
        ];
        assert_eq!(found, wanted);
        // adrp x16, +0x10000; ldr x17, [x16, #0xfb8]; add; br x17
        let words = [0x9000_0090, 0xf947_de11, 0x913e_e210, 0xd61f_0220];
        assert_eq!(stub(Aarch64, &code(&words), 0x6d0), Some(0x10fb8));
        let marked = [0xd503_245f, words[0], words[1], words[2]];
        assert_eq!(stub(Aarch64, &code(&marked), 0x6d0), Some(0x10fb8));
    }
}
