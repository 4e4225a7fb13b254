//! [`access`] finds, in the code around a sampled instruction, the access that the sample represents and how its address follows from the
//! sampled registers: that of the instruction before, traced back through a few instructions where it overwrote its own address, or else
//! the next one. [`operand_access`] says whether an instruction reads its operand, writes it, or both.

use crate::instruction::{Decode, Flow, Operand, OperandAccess, Step, Window};
use crate::registers::Registers;
use crate::{arm64, x86};

/// Bytes of code read before the sampled instruction: a loop of this length fits.
pub const BYTES_BEFORE: usize = 256;

/// Bytes of code read from the sampled instruction on.
pub const BYTES_AFTER: usize = 64;

/// Most instructions searched forward. Eight is two fetch groups of a wide core: further on, the
/// link between the sample and the access is weak.
const INSTRUCTIONS_FORWARD: usize = 8;

/// Most instructions before the access that are asked how its registers were made. Each costs as much as decoding some sixty.
const INSTRUCTIONS_TRACED: usize = 4;

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

    /// The stack pointer, if it was recorded.
    #[must_use]
    pub fn stack_pointer(self, registers: &Registers) -> Option<u64> {
        // As `asm/perf_regs.h` numbers them.
        registers.get(match self {
            Self::X86 => 7,
            Self::Arm64 => 31,
        })
    }
}

/// When the access of a sample is made, relative to the sampled instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOrder {
    /// By the instruction before the sampled one, which has retired: the access that the program
    /// waited for.
    Retired,
    /// By a later instruction. The one before the sampled one made an access too, but has
    /// overwritten the registers of its address, as in pointer chasing.
    NextAfterAccess,
    /// By a later instruction. The one before the sampled one made no access that counts, or is
    /// not known.
    Next,
}

/// An access near the sampled instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearbyAccess {
    /// The computation of its address from the sampled registers.
    pub operand: Operand,
    /// When it is made.
    pub order: AccessOrder,
    /// Address of the instruction that makes it.
    pub at: u64,
}

/// Finds the access that a sample in this code represents. None: there is none, or its operand needs registers that
/// were written since.
#[must_use]
pub fn access(architecture: Architecture, window: &Window<'_>) -> Option<NearbyAccess> {
    match architecture {
        Architecture::X86 => search(&x86::Reader::default(), window),
        Architecture::Arm64 => search(&arm64::Reader::default(), window),
    }
}

/// What the instruction at an address of this code does with its memory operand; `None` where it has none, or the decoder does not know.
#[must_use]
pub fn operand_access(
    architecture: Architecture,
    window: &Window<'_>,
    at: u64,
) -> Option<OperandAccess> {
    let code = &window.code[window.offset(at)?..];
    match architecture {
        Architecture::X86 => x86::Reader::default().operand_access(code),
        Architecture::Arm64 => arm64::Reader::default().operand_access(code),
    }
}

pub(crate) fn search(reader: &impl Decode, window: &Window<'_>) -> Option<NearbyAccess> {
    let next = |order| {
        let (operand, at) = forward(reader, window)?;
        Some(NearbyAccess { operand, order, at })
    };
    let Some(retired) = backward(reader, window) else {
        return next(AccessOrder::Next);
    };
    match retired.in_present_registers(reader, window) {
        Some(operand) => Some(NearbyAccess {
            operand,
            order: AccessOrder::Retired,
            at: window.address(retired.offset),
        }),
        None => next(AccessOrder::NextAfterAccess),
    }
}

/// The access of the instruction before the sampled one.
struct Retired {
    operand: Operand,
    /// Where it begins in the code.
    offset: usize,
    /// Registers that were written by it and since.
    written: u64,
}

impl Retired {
    /// The operand in terms of registers that still have their values. Where the instruction overwrote a register of its own
    /// address, as a look-up in a hash table does, the instructions before it may say how it was made of others:
    ///
    /// ```text
    ///   mov   %r9d,%r11d             r9 still has its value: the address is (%r15) + (r9 << 4)
    ///   shl   $4,%r11d
    ///   mov   (%r15,%r11),%r11       <- the slow access
    ///   test  %r11,%r11              <- sampled here
    /// ```
    fn in_present_registers(&self, reader: &impl Decode, window: &Window<'_>) -> Option<Operand> {
        let (mut operand, mut written, mut offset) = (self.operand, self.written, self.offset);
        if !operand.needs_any(written) {
            return Some(operand);
        }
        for _ in 0..INSTRUCTIONS_TRACED {
            offset = reader.previous(window, offset)?;
            let step = reader.step(&window.code[offset..], window.address(offset))?;
            if step.flow != Flow::Next {
                return None;
            }
            if operand.needs_any(step.written) {
                operand = operand.before(&step.derivation?)?;
            }
            written |= step.written;
            if !operand.needs_any(written) {
                return (!is_entered(reader, window, offset, self.offset)).then_some(operand);
            }
        }
        None
    }
}

/// Whether a jump nearby leads behind the instruction at `from`, as far as to the one at `to`: then the instructions between
/// them may have been left out.
fn is_entered(reader: &impl Decode, window: &Window<'_>, from: usize, to: usize) -> bool {
    let entered = window.address(from).wrapping_add(1)..=window.address(to);
    let mut offset = 0;
    while offset < window.code.len() {
        let step = reader.step(&window.code[offset..], window.address(offset));
        if let Some(Flow::Jump(target) | Flow::Branch(target)) = step.map(|step| step.flow)
            && entered.contains(&target)
        {
            return true;
        }
        offset += step.map_or(1, |step| step.length.max(1));
    }
    false
}

/// The access of the instruction before, or of the one before that if a compare and an untaken
/// branch retire as one.
fn backward(reader: &impl Decode, window: &Window<'_>) -> Option<Retired> {
    let mut written = 0;
    let mut offset = window.offset(window.ip)?;
    for _ in 0..2 {
        offset = reader.previous(window, offset)?;
        let step = reader.step(&window.code[offset..], window.address(offset))?;
        written |= step.written;
        match (step.operand, step.flow) {
            (Some(operand), Flow::Next) => {
                return Some(Retired {
                    operand,
                    offset,
                    written,
                });
            }
            (None, Flow::Branch(_)) => {}
            _ => return None,
        }
    }
    None
}

/// The next access, and the address of its instruction.
fn forward(reader: &impl Decode, window: &Window<'_>) -> Option<(Operand, u64)> {
    let mut between = [None; INSTRUCTIONS_FORWARD];
    let mut address = window.ip;
    for number in 0..INSTRUCTIONS_FORWARD {
        let offset = window.offset(address)?;
        let step = reader.step(&window.code[offset..], address)?;
        if let Some(operand) = step.operand {
            // If its address depends on instructions in between that cannot be told, so does every later candidate.
            let operand = in_sampled_registers(operand, &between[..number])?;
            return Some((operand, address));
        }
        between[number] = Some(step);
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

/// The operand in terms of the sampled registers, where the instructions between say how its own are made of them. So in a chase by
/// numbers instead of pointers:
///
/// ```text
///   shl   $6,%rbx                the next address is (%r14) + (rbx << 6)
///   mov   (%r14,%rbx),%rbx       <- the slow access
///   sub   $1,%rax                <- sampled here
///   jne   shl
/// ```
fn in_sampled_registers(operand: Operand, between: &[Option<Step>]) -> Option<Operand> {
    let mut steps = between.iter().rev().flatten();
    steps.try_fold(operand, |operand, step| {
        match operand.needs_any(step.written) {
            true => operand.before(&step.derivation?),
            false => Some(operand),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{AccessOrder, Architecture, OperandAccess, Window, access, operand_access};
    use proptest::prelude::{any, prop};

    #[test]
    fn the_order_tells_the_access_that_retired_from_the_next_one() {
        let order = |code: &[u8], at: u64| {
            let window = Window {
                code,
                start: 0x1000,
                ip: 0x1000 + at,
            };
            access(Architecture::X86, &window).map(|found| found.order)
        };
        // nop; nop; mov rax, [rdi]; nop
        let retired = [0x90, 0x90, 0x48, 0x8b, 0x07, 0x90];
        assert_eq!(order(&retired, 5), Some(AccessOrder::Retired));
        // nop; nop; mov rdi, [rdi]; dec rcx; jne -> mov
        let chase = [0x90, 0x90, 0x48, 0x8b, 0x3f, 0x48, 0xff, 0xc9, 0x75, 0xf8];
        assert_eq!(order(&chase, 5), Some(AccessOrder::NextAfterAccess));
        // shl rbx, 6; mov rbx, [r14 + rbx]; sub rax, 1; jne -> shl
        let by_number = [
            0x48, 0xc1, 0xe3, 0x06, 0x49, 0x8b, 0x1c, 0x1e, 0x48, 0x83, 0xe8, 0x01, 0x75, 0xf2,
        ];
        assert_eq!(order(&by_number, 8), Some(AccessOrder::NextAfterAccess));
        // nop; nop; mov rax, [rdi]
        let later = [0x90, 0x90, 0x48, 0x8b, 0x07];
        assert_eq!(order(&later, 1), Some(AccessOrder::Next));
        // nop
        assert_eq!(order(&[0x90, 0x90], 1), None);
    }

    #[test]
    fn an_access_names_its_instruction_and_whether_that_reads_or_writes() {
        use OperandAccess::{Read, ReadWrite, Write};
        let kind = |architecture, code: &[u8], at: u64| {
            let window = Window {
                code,
                start: 0x1000,
                ip: 0x1000 + at,
            };
            let found = access(architecture, &window)?;
            Some((
                found.at - 0x1000,
                operand_access(architecture, &window, found.at)?,
            ))
        };
        let x86 = |code: &[u8], at| kind(Architecture::X86, code, at);
        // nop; nop; mov rax, [rdi]; nop
        assert_eq!(
            x86(&[0x90, 0x90, 0x48, 0x8b, 0x07, 0x90], 5),
            Some((2, Read))
        );
        // nop; nop; mov [rdi], rax; nop
        assert_eq!(
            x86(&[0x90, 0x90, 0x48, 0x89, 0x07, 0x90], 5),
            Some((2, Write))
        );
        // nop; nop; add [rdi], rax; nop
        assert_eq!(
            x86(&[0x90, 0x90, 0x48, 0x01, 0x07, 0x90], 5),
            Some((2, ReadWrite))
        );
        // nop; nop; cmp [rdi], rax; nop
        assert_eq!(
            x86(&[0x90, 0x90, 0x48, 0x39, 0x07, 0x90], 5),
            Some((2, Read))
        );
        // nop; nop; mov rax, [rdi]: sampled before it
        assert_eq!(x86(&[0x90, 0x90, 0x48, 0x8b, 0x07], 1), Some((2, Read)));
        // rep movsb yields its source.
        assert_eq!(x86(&[0x90, 0x90, 0xf3, 0xa4], 1), Some((2, Read)));
        let arm64 = |word: u32| kind(Architecture::Arm64, &word.to_le_bytes(), 0);
        assert_eq!(arm64(0xf940_0020), Some((0, Read)), "ldr x0, [x1]");
        assert_eq!(arm64(0xa940_0be1), Some((0, Read)), "ldp x1, x2, [sp]");
        assert_eq!(arm64(0xf900_0021), Some((0, Write)), "str x1, [x1]");
        assert_eq!(arm64(0xf8e0_0022), None, "ldaddal x0, x2, [x1] is not told");
    }

    proptest::proptest! {
        #[test]
        fn no_code_makes_a_decoder_panic(start in any::<u64>(), at in 0u64..100, code in prop::collection::vec(any::<u8>(), 0..100)) {
            for architecture in [Architecture::X86, Architecture::Arm64] {
                let ip = start.wrapping_add(at);
                let window = Window { code: &code, start, ip };
                let _ = access(architecture, &window);
                let _ = operand_access(architecture, &window, ip);
            }
        }
    }
}
