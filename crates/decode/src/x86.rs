//! [`Reader`] decodes x86-64 instructions for the search for the access of a sample (`search`): the memory operand, whether it is read or
//! written, the registers that are written and how one is made of another, the next address, and the start of the instruction before.
//! Instructions that `yaxpeax-x86` refuses are left to `vector`.

mod perf_number;
mod vector;

use yaxpeax_arch::LengthedInstruction;
use yaxpeax_x86::long_mode::{
    InstDecoder, Instruction, Opcode, Operand as X86, RegSpec, Segment, register_class,
};

use crate::instruction::{
    Decode, Derivation, Extend, Flow, Index, Operand, OperandAccess, Step, Window,
};
use perf_number::perf_number;

/// Decodes instructions.
#[derive(Default)]
pub(crate) struct Reader {
    decoder: InstDecoder,
}

/// Longest instruction, in bytes.
const LONGEST: usize = 15;

/// Bytes before an instruction that are searched for its predecessor. Decoding from a wrong byte
/// meets the right boundaries after a few instructions, nearly always within half of this.
const VOTERS: usize = 64;

impl Decode for Reader {
    fn step(&self, code: &[u8], address: u64) -> Option<Step> {
        let Some(instruction) = self.decode(code) else {
            return vector::step(code, address);
        };
        let length = length(&instruction);
        let next = address.wrapping_add(length as u64);
        Some(Step {
            length,
            operand: operand(&instruction, next),
            written: written(&instruction),
            derivation: derivation(&instruction),
            flow: flow(&instruction, next),
        })
    }

    /// x86 code cannot be decoded backwards. Each byte before is tried as the start of an
    /// instruction; the predecessor on which most of them agree is used, if it has a majority.
    ///
    /// ```text
    /// bytes      . . . . . . . . . | ip
    /// from here  >-->----->-->---->|   right boundaries
    /// and here     >->-->-->------>|   fell in with them: one vote more
    /// and here   ...    >---->  >-> |  runs past: no vote
    /// ```
    fn previous(&self, window: &Window<'_>, offset: usize) -> Option<usize> {
        let first = offset.saturating_sub(VOTERS);
        let mut predecessor: [Option<usize>; VOTERS] = [None; VOTERS];
        for at in (first..offset).rev() {
            let Some(length) = self.length(&window.code[at..]) else {
                continue;
            };
            let next = at + length;
            predecessor[at - first] = match next.cmp(&offset) {
                core::cmp::Ordering::Equal => Some(at),
                core::cmp::Ordering::Less => predecessor[next - first],
                core::cmp::Ordering::Greater => None,
            };
        }
        let mut votes = [0_usize; LONGEST + 1];
        for found in predecessor.iter().flatten() {
            votes[offset - found] += 1;
        }
        let total: usize = votes.iter().sum();
        let (length, most) = votes.iter().enumerate().max_by_key(|(_, votes)| **votes)?;
        (most * 2 > total).then(|| offset - length)
    }

    fn operand_access(&self, code: &[u8]) -> Option<OperandAccess> {
        let instruction = self.decode(code)?;
        match instruction.opcode() {
            // The source of a copy counts.
            Opcode::MOVS | Opcode::CMPS | Opcode::XLAT => return Some(OperandAccess::Read),
            Opcode::MASKMOVQ | Opcode::MASKMOVDQU | Opcode::VMASKMOVDQU => {
                return Some(OperandAccess::Write);
            }
            _ => {}
        }
        let mut operands = 0..instruction.operand_count();
        let place = operands.find(|it| memory(&instruction.operand(*it)).is_some())?;
        // The decoder says that these read what they write, as they write a part of a register.
        let is_move = matches!(
            instruction.opcode(),
            Opcode::MOV | Opcode::MOVSS | Opcode::MOVSD
        );
        if place == 0 && is_move {
            return Some(OperandAccess::Write);
        }
        let access = instruction.behavior().operand_access(place)?;
        match (access.is_read(), access.is_write()) {
            (true, true) => Some(OperandAccess::ReadWrite),
            (true, false) => Some(OperandAccess::Read),
            (false, true) => Some(OperandAccess::Write),
            (false, false) => None,
        }
    }
}

impl Reader {
    fn decode(&self, code: &[u8]) -> Option<Instruction> {
        let code = &code[..code.len().min(LONGEST)];
        self.decoder.decode_slice(code).ok()
    }

    /// The length of the instruction at the start of `code`.
    fn length(&self, code: &[u8]) -> Option<usize> {
        let known = self.decode(code).map(|instruction| length(&instruction));
        known.or_else(|| Some(vector::step(code, 0)?.length))
    }
}

fn length(instruction: &Instruction) -> usize {
    instruction.len().to_const() as usize
}

/// The operand that counts. `next` is the address of the next instruction, to which relative
/// operands are added.
fn operand(instruction: &Instruction, next: u64) -> Option<Operand> {
    let opcode = instruction.opcode();
    if only_names_memory(opcode) {
        return None;
    }
    let mut memory =
        (0..instruction.operand_count()).filter_map(|it| memory(&instruction.operand(it)));
    let memory = match opcode {
        // Two operands, the target first: the source counts, unless it is thread-local.
        Opcode::MOVS | Opcode::CMPS if is_thread_local(instruction) => memory.next(),
        Opcode::MOVS | Opcode::CMPS => memory.next_back(),
        _ if is_thread_local(instruction) => None,
        // No operand in the instruction, a register that implies one.
        Opcode::XLAT => Some(Memory::at(RegSpec::rbx())),
        Opcode::MASKMOVQ | Opcode::MASKMOVDQU | Opcode::VMASKMOVDQU => {
            Some(Memory::at(RegSpec::rdi()))
        }
        _ => memory.next(),
    }?;
    let is_stack_slot = is_stack(opcode) && memory.base == Some(RegSpec::rsp());
    let narrow = instruction.prefixes.address_size();
    let operand = memory.operand(next)?;
    (!is_stack_slot).then_some(Operand { narrow, ..operand })
}

/// Instructions with an operand in memory that they do not access.
fn only_names_memory(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::LEA
            | Opcode::NOP
            | Opcode::PREFETCHNTA
            | Opcode::PREFETCH0
            | Opcode::PREFETCH1
            | Opcode::PREFETCH2
            | Opcode::PREFETCHW
            | Opcode::CLFLUSH
            | Opcode::CLFLUSHOPT
            | Opcode::CLWB
            | Opcode::INVLPG
            | Opcode::UD0
            | Opcode::UD1
            | Opcode::BNDMK
            | Opcode::BNDCL
            | Opcode::BNDCU
            | Opcode::BNDCN
    )
}

/// Instructions with a stack slot that their operands do not show.
fn is_stack(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::PUSH | Opcode::POP | Opcode::CALL | Opcode::CALLF
    )
}

/// Whether the operand in memory is relative to `fs` or `gs`.
fn is_thread_local(instruction: &Instruction) -> bool {
    matches!(instruction.prefixes.segment(), Segment::FS | Segment::GS)
}

/// An operand in memory, in the decoder's terms.
#[derive(Clone, Copy, Default)]
struct Memory {
    base: Option<RegSpec>,
    index: Option<(RegSpec, u8)>,
    displacement: u64,
}

impl Memory {
    fn at(base: RegSpec) -> Self {
        Self {
            base: Some(base),
            ..Self::default()
        }
    }

    fn operand(self, next: u64) -> Option<Operand> {
        let (base, origin) = match self.base.map(|register| (register, register.class())) {
            Some((_, register_class::RIP | register_class::EIP)) => (None, next),
            Some((register, _)) => (Some(number(register)?), 0),
            None => (None, 0),
        };
        let index = match self.index {
            // Of a gather or scatter, the base alone is known.
            Some((vector, _)) if is_vector(vector) => None,
            Some((register, scale)) => Some(Index::scaled(number(register)?, scale)),
            None => None,
        };
        Some(Operand {
            base,
            index,
            displacement: origin.wrapping_add(self.displacement),
            narrow: false,
        })
    }
}

/// The memory that an operand names, if it names any.
fn memory(operand: &X86) -> Option<Memory> {
    let (base, index, displacement) = match *operand {
        X86::AbsoluteU32 { addr } => (None, None, addr.cast_signed()),
        X86::AbsoluteU64 { addr } => {
            return Some(Memory {
                displacement: addr,
                ..Memory::default()
            });
        }
        X86::MemDeref { base } | X86::MemDerefMasked { base, .. } => (Some(base), None, 0),
        X86::Disp { base, disp } | X86::DispMasked { base, disp, .. } => (Some(base), None, disp),
        X86::MemIndexScale { index, scale } | X86::MemIndexScaleMasked { index, scale, .. } => {
            (None, Some((index, scale)), 0)
        }
        X86::MemIndexScaleDisp { index, scale, disp }
        | X86::MemIndexScaleDispMasked {
            index, scale, disp, ..
        } => (None, Some((index, scale)), disp),
        X86::MemBaseIndexScale { base, index, scale }
        | X86::MemBaseIndexScaleMasked {
            base, index, scale, ..
        } => (Some(base), Some((index, scale)), 0),
        X86::MemBaseIndexScaleDisp {
            base,
            index,
            scale,
            disp,
        }
        | X86::MemBaseIndexScaleDispMasked {
            base,
            index,
            scale,
            disp,
            ..
        } => (Some(base), Some((index, scale)), disp),
        _ => return None,
    };
    Some(Memory {
        base,
        index,
        displacement: i64::from(displacement).cast_unsigned(),
    })
}

fn is_vector(register: RegSpec) -> bool {
    matches!(
        register.class(),
        register_class::X | register_class::Y | register_class::Z
    )
}

/// General registers that an instruction writes, bit n for number n; some too many where the
/// decoder does not know, which costs a sample and never yields a wrong address.
fn written(instruction: &Instruction) -> u64 {
    let behavior = instruction.behavior();
    let explicit = (0..instruction.operand_count())
        .filter(|it| {
            // No access is what the decoder says of an instruction that it does not describe.
            let access = behavior.operand_access(*it);
            access.is_none_or(|access| access.is_write() || !access.is_read())
        })
        .filter_map(|it| match instruction.operand(it) {
            X86::Register { reg } => number(reg),
            _ => None,
        })
        .fold(0, |set, register| set | 1 << register);
    explicit | implied(instruction)
}

/// How an instruction makes the value of the one general register that it writes.
fn derivation(instruction: &Instruction) -> Option<Derivation> {
    let X86::Register { reg } = instruction.operand(0) else {
        return None;
    };
    let (target, is_wide) = match reg.class() {
        register_class::Q => (number(reg)?, true),
        register_class::D => (number(reg)?, false),
        _ => return None,
    };
    let constant = match instruction.operand(1) {
        X86::ImmediateI8 { imm } => Some(i64::from(imm).cast_unsigned()),
        X86::ImmediateU8 { imm } => Some(u64::from(imm)),
        X86::ImmediateI32 { imm } => Some(i64::from(imm).cast_unsigned()),
        _ => None,
    };
    let itself = Index::of(target);
    let (source, add) = match (instruction.opcode(), is_wide) {
        (opcode @ (Opcode::MOV | Opcode::MOVSXD), _) => {
            let X86::Register { reg } = instruction.operand(1) else {
                return None;
            };
            let extend = match (opcode, reg.class(), is_wide) {
                (Opcode::MOV, register_class::Q, true) => Extend::No,
                (Opcode::MOV, register_class::D, false) => Extend::Zero,
                (Opcode::MOVSXD, register_class::D, true) => Extend::Sign,
                _ => return None,
            };
            let source = Index::of(number(reg)?);
            (Index { extend, ..source }, 0)
        }
        (Opcode::SHL, _) => {
            let source = Index {
                register: target,
                shift: (constant? & if is_wide { 63 } else { 31 }) as u8,
                extend: if is_wide { Extend::No } else { Extend::Zero },
                wraps: !is_wide,
            };
            (source, 0)
        }
        (Opcode::ADD, true) => (itself, constant?),
        (Opcode::SUB, true) => (itself, constant?.wrapping_neg()),
        (Opcode::INC, true) => (itself, 1),
        (Opcode::DEC, true) => (itself, u64::MAX),
        (Opcode::LEA, true) if !instruction.prefixes.address_size() => {
            let memory = memory(&instruction.operand(1))?;
            let source = match (memory.base, memory.index) {
                (Some(base), None) if base.class() == register_class::Q => Index::of(number(base)?),
                (None, Some((index, scale))) => Index::scaled(number(index)?, scale),
                _ => return None,
            };
            (source, memory.displacement)
        }
        _ => return None,
    };
    Some(Derivation {
        target,
        source,
        add,
    })
}

/// General registers that an instruction writes without an operand that shows it.
fn implied(instruction: &Instruction) -> u64 {
    const AX: u64 = 1;
    const BX: u64 = 1 << 1;
    const CX: u64 = 1 << 2;
    const DX: u64 = 1 << 3;
    const SI: u64 = 1 << 4;
    const DI: u64 = 1 << 5;
    const BP: u64 = 1 << 6;
    const SP: u64 = 1 << 7;
    const R11: u64 = 1 << 19;
    let repeated = if instruction.prefixes.rep_any() {
        CX
    } else {
        0
    };
    match instruction.opcode() {
        opcode if is_system(opcode) => u64::MAX,
        Opcode::CBW | Opcode::CWDE | Opcode::CDQE | Opcode::LAHF | Opcode::SALC | Opcode::XLAT => {
            AX
        }
        Opcode::CMPXCHG | Opcode::XABORT | Opcode::XBEGIN | Opcode::FNSTSW => AX,
        Opcode::CWD | Opcode::CDQ | Opcode::CQO => DX,
        Opcode::MUL | Opcode::DIV | Opcode::IDIV => AX | DX,
        Opcode::IMUL if instruction.operand_count() == 1 => AX | DX,
        Opcode::CMPXCHG8B | Opcode::CMPXCHG16B => AX | DX,
        Opcode::RDTSC | Opcode::RDPMC | Opcode::RDMSR | Opcode::RDPRU => AX | DX,
        Opcode::XGETBV | Opcode::RDPKRU => AX | DX,
        Opcode::RDTSCP => AX | CX | DX,
        Opcode::CPUID => AX | BX | CX | DX,
        Opcode::PUSH | Opcode::POP | Opcode::PUSHF | Opcode::POPF => SP,
        Opcode::CALL | Opcode::CALLF | Opcode::RETURN | Opcode::RETF => SP,
        Opcode::IRET | Opcode::IRETD | Opcode::IRETQ | Opcode::UIRET => SP,
        Opcode::ENTER | Opcode::LEAVE => SP | BP,
        Opcode::MOVS | Opcode::CMPS => SI | DI | repeated,
        Opcode::LODS => AX | SI | repeated,
        Opcode::STOS | Opcode::SCAS | Opcode::INS => DI | repeated,
        Opcode::OUTS => SI | repeated,
        Opcode::LOOP | Opcode::LOOPZ | Opcode::LOOPNZ => CX,
        Opcode::PCMPESTRI | Opcode::PCMPISTRI | Opcode::VPCMPESTRI | Opcode::VPCMPISTRI => CX,
        Opcode::SYSCALL => CX | R11,
        _ => 0,
    }
}

fn flow(instruction: &Instruction, next: u64) -> Flow {
    let opcode = instruction.opcode();
    let target = match instruction.operand(0) {
        X86::ImmediateI8 { imm } => Some(i64::from(imm)),
        X86::ImmediateI32 { imm } => Some(i64::from(imm)),
        _ => None,
    };
    let target = target.map(|offset| next.wrapping_add_signed(offset));
    match (opcode, target) {
        (Opcode::JMP, Some(target)) => Flow::Jump(target),
        (Opcode::LOOP | Opcode::LOOPZ | Opcode::LOOPNZ, Some(target)) => Flow::Branch(target),
        (Opcode::JRCXZ | Opcode::JECXZ, Some(target)) => Flow::Branch(target),
        (opcode, Some(target)) if opcode.is_jcc() => Flow::Branch(target),
        _ if leaves(opcode) || is_system(opcode) => Flow::Unknown,
        _ => Flow::Next,
    }
}

/// Instructions after which the next address is not in the instruction.
fn leaves(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::JMP
            | Opcode::JMPF
            | Opcode::CALL
            | Opcode::CALLF
            | Opcode::RETURN
            | Opcode::RETF
            | Opcode::IRET
            | Opcode::IRETD
            | Opcode::IRETQ
            | Opcode::UIRET
            | Opcode::INT
            | Opcode::INTO
            | Opcode::SYSCALL
            | Opcode::UD0
            | Opcode::UD1
            | Opcode::UD2
            | Opcode::XBEGIN
    )
}

/// Instructions that call a monitor, an enclave or the kernel, or that a program may not use.
fn is_system(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::ENCLS
            | Opcode::ENCLU
            | Opcode::ENCLV
            | Opcode::GETSEC
            | Opcode::PCONFIG
            | Opcode::PSMASH
            | Opcode::PVALIDATE
            | Opcode::RMPADJUST
            | Opcode::RMPUPDATE
            | Opcode::RSM
            | Opcode::SEAMCALL
            | Opcode::SEAMOPS
            | Opcode::SEAMRET
            | Opcode::SKINIT
            | Opcode::SYSENTER
            | Opcode::SYSEXIT
            | Opcode::SYSRET
            | Opcode::TDCALL
            | Opcode::VMCALL
            | Opcode::VMLAUNCH
            | Opcode::VMMCALL
            | Opcode::VMRESUME
            | Opcode::VMRUN
    )
}

/// The register's number in `arch/x86/include/uapi/asm/perf_regs.h`, if it is a general register
/// or a part of one.
fn number(register: RegSpec) -> Option<u8> {
    match register.class() {
        register_class::Q | register_class::D | register_class::W | register_class::RB => {
            perf_number(register.num())
        }
        // ah, ch, dh and bh follow al, cl, dl and bl.
        register_class::B => perf_number(register.num() % 4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Architecture, Registers, Window, access};

    const IP: u64 = 0x40_1000;

    /// The address computed from registers that each hold their own number times 2^20.
    fn address(code: &[u8]) -> Option<u64> {
        address_at(code, 0)
    }

    /// As `address`, for a sample at this byte of the code.
    fn address_at(code: &[u8], at: u64) -> Option<u64> {
        let mut registers = Registers::NONE;
        for number in (0..10).chain(16..24) {
            registers.set(number, u64::from(number) << 20);
        }
        let window = Window {
            code,
            start: IP,
            ip: IP + at,
        };
        access(Architecture::X86, &window)?
            .operand
            .address(&registers)
    }

    const CX: u64 = 2 << 20;
    const SI: u64 = 4 << 20;
    const DI: u64 = 5 << 20;
    const SP: u64 = 7 << 20;

    #[test]
    fn every_kind_of_operand_yields_its_address() {
        // mov rax, [rdi+rcx*8+0x10]
        assert_eq!(
            address(&[0x48, 0x8b, 0x44, 0xcf, 0x10]),
            Some(DI + CX * 8 + 0x10)
        );
        // mov [rsi-8], rax
        assert_eq!(address(&[0x48, 0x89, 0x46, 0xf8]), Some(SI - 8));
        // mov eax, [rip+0x100] (six bytes long)
        assert_eq!(address(&[0x8b, 0x05, 0, 1, 0, 0]), Some(IP + 6 + 0x100));
        // mov rax, [rsp+8]
        assert_eq!(address(&[0x48, 0x8b, 0x44, 0x24, 0x08]), Some(SP + 8));
        // mov eax, [0x12345678] with a 32-bit absolute address
        assert_eq!(
            address(&[0x8b, 0x04, 0x25, 0x78, 0x56, 0x34, 0x12]),
            Some(0x1234_5678)
        );
        // vmovups ymm0, [rdi]
        assert_eq!(address(&[0xc5, 0xfc, 0x10, 0x07]), Some(DI));
        // mov eax, [esi] (address-size prefix)
        assert_eq!(address(&[0x67, 0x8b, 0x06]), Some(SI));
    }

    #[test]
    fn string_instructions_yield_their_source_or_their_target() {
        assert_eq!(address(&[0xf3, 0xa4]), Some(SI), "rep movsb");
        assert_eq!(address(&[0xf3, 0x48, 0xab]), Some(DI), "rep stosq");
    }

    #[test]
    fn a_gather_yields_its_base() {
        // vpgatherdd ymm0, [rdi+ymm1*4], ymm2
        assert_eq!(address(&[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x8f]), Some(DI));
    }

    #[test]
    fn vector_instructions_that_the_library_refuses_are_decoded() {
        // vpsrldq zmm2, [rdi+rcx*4+64], 4
        assert_eq!(
            address(&[0x62, 0xf1, 0x6d, 0x48, 0x73, 0x5c, 0x8f, 0x01, 0x04]),
            Some(DI + CX * 4 + 64)
        );
        // vpgatherqq zmm2{k3}, [rdi+zmm4*8]
        assert_eq!(
            address(&[0x62, 0xf2, 0xfd, 0x4b, 0x91, 0x14, 0xe7]),
            Some(DI)
        );
        // kmovd eax, k0; mov rax, [rdi]
        assert_eq!(
            address(&[0xc5, 0xfb, 0x93, 0xc0, 0x48, 0x8b, 0x07]),
            Some(DI)
        );
        // kmovd edi, k0; mov rax, [rdi]
        assert_eq!(address(&[0xc5, 0xfb, 0x93, 0xf8, 0x48, 0x8b, 0x07]), None);
    }

    #[test]
    fn thread_local_data_and_implied_stack_slots_do_not_count() {
        // mov rax, fs:[0x28]
        assert_eq!(
            address(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]),
            None
        );
        assert_eq!(address(&[0x55]), None, "push rbp");
        assert_eq!(address(&[0xc3]), None, "ret");
        // push [rdi]: the read counts, the stack slot does not
        assert_eq!(address(&[0xff, 0x37]), Some(DI));
        // prefetcht0 [rdi]; lea rax, [rdi]
        assert_eq!(address(&[0x0f, 0x18, 0x0f]), None);
        assert_eq!(address(&[0x48, 0x8d, 0x07]), None);
    }

    #[test]
    fn the_next_access_of_the_block_counts_unless_its_registers_change() {
        // add rdx, rcx; mov rax, [rdi]
        assert_eq!(address(&[0x48, 0x01, 0xca, 0x48, 0x8b, 0x07]), Some(DI));
        // add rdi, rcx; mov rax, [rdi]
        assert_eq!(address(&[0x48, 0x01, 0xcf, 0x48, 0x8b, 0x07]), None);
        // add edi, ecx: a write to the low half changes the whole register
        assert_eq!(address(&[0x01, 0xcf, 0x48, 0x8b, 0x07]), None);
        // jne +0; mov rax, [rdi]
        assert_eq!(address(&[0x75, 0, 0x48, 0x8b, 0x07]), None);
        // nine times nop; mov rax, [rdi]
        let far: Vec<u8> = [0x90; 9].into_iter().chain([0x48, 0x8b, 0x07]).collect();
        assert_eq!(address(&far), None);
    }

    #[test]
    fn the_access_just_before_comes_first_unless_it_overwrote_its_registers() {
        // The loop of tests/programs/hot.c: and eax, 0x7fffff; add r12, [rdx+rax*8]; sub esi, 1;
        // jne -> and
        let code = [
            0x48, 0x0f, 0xaf, 0xc5, 0x48, 0xd1, 0xc8, 0x49, 0x39, 0xc7, 0x48, 0x89, 0xd8, 0x49,
            0x0f, 0x43, 0xd6, 0x48, 0xc1, 0xe8, 0x14, 0x25, 0xff, 0xff, 0x7f, 0x00, 0x4c, 0x03,
            0x24, 0xc2, 0x83, 0xee, 0x01, 0x75, 0xb9,
        ];
        assert_eq!(address_at(&code, 30), Some(3 << 20), "sampled at sub");
        // cmp [rdi], eax; jne +2; nop
        let fused = [0x90, 0x90, 0x39, 0x07, 0x75, 0x02, 0x90];
        assert_eq!(
            address_at(&fused, 6),
            Some(DI),
            "compare and branch retire as one"
        );
    }

    /// As `address_at`, with code before it from which the boundaries of its instructions are known.
    fn address_behind(code: &[u8], at: usize) -> Option<u64> {
        let before = [0x90; 24];
        address_at(&[&before, code].concat(), (before.len() + at) as u64)
    }

    #[test]
    fn an_index_that_the_access_overwrote_is_made_again_of_the_registers_before() {
        // mov edx, ecx; shl edx, 4; mov rdx, [rdi+rdx]; test rdx, rdx; je +2
        let mut code = [
            0x89, 0xca, 0xc1, 0xe2, 0x04, 0x48, 0x8b, 0x14, 0x17, 0x48, 0x85, 0xd2, 0x74, 0x02,
        ];
        assert_eq!(address_behind(&code, 9), Some(DI + (CX << 4)));
        // A shift of 32 bits loses what leaves them.
        code[4] = 12;
        assert_eq!(
            address_behind(&code, 9),
            Some(DI + (CX << 12 & 0xffff_ffff))
        );
        // mov edx, [rcx] in place of the copy: nothing tells the index.
        (code[0], code[1]) = (0x8b, 0x11);
        assert_eq!(address_behind(&code, 9), None);
        // lea rdx, [rcx*8+16]; mov rdx, [rdi+rdx]; test rdx, rdx; je +2
        let scaled = [
            0x48, 0x8d, 0x14, 0xcd, 0x10, 0, 0, 0, 0x48, 0x8b, 0x14, 0x17, 0x48, 0x85, 0xd2, 0x74,
            0x02,
        ];
        assert_eq!(address_behind(&scaled, 12), Some(DI + CX * 8 + 16));
        // lea rdx, [rsi+8]; mov rdx, [rdx]; test rdx, rdx; je +2: a base
        let base = [
            0x48, 0x8d, 0x56, 0x08, 0x48, 0x8b, 0x12, 0x48, 0x85, 0xd2, 0x74, 0x02,
        ];
        assert_eq!(address_behind(&base, 7), Some(SI + 8));
        // mov rdx, rcx; mov rcx, [rsi]; mov rdx, [rdi+rdx]; test rdx, rdx; je +2: the source is overwritten, too
        let lost = [
            0x48, 0x89, 0xca, 0x48, 0x8b, 0x0e, 0x48, 0x8b, 0x14, 0x17, 0x48, 0x85, 0xd2, 0x74,
            0x02,
        ];
        assert_eq!(address_behind(&lost, 10), None);
    }

    #[test]
    fn an_index_is_not_made_again_where_a_jump_leads_behind_the_instruction_that_made_it() {
        // mov edx, ecx; nop; mov rdx, [rdi+rdx]; test rdx, rdx; je -9 -> nop, or -11 -> mov
        let mut code = [
            0x89, 0xca, 0x90, 0x48, 0x8b, 0x14, 0x17, 0x48, 0x85, 0xd2, 0x75, 0xf4,
        ];
        assert_eq!(address_behind(&code, 7), Some(DI + CX), "to the mov");
        code[11] = 0xf6;
        assert_eq!(
            address_behind(&code, 7),
            Some(DI + (3 << 20)),
            "to the nop: the access of the next round"
        );
    }

    #[test]
    fn a_pointer_chase_yields_the_next_link_through_the_jump_back() {
        // mov rdi, [rdi]; dec rcx; jne -> mov
        let chase = [0x48, 0x8b, 0x3f, 0x48, 0xff, 0xc9, 0x75, 0xf8];
        assert_eq!(address_at(&chase, 3), Some(DI));
        // The same with jmp forward to a load: mov rdi, [rdi]; jmp +1; nop; mov rax, [rsi]
        let jump = [0x48, 0x8b, 0x3f, 0xeb, 0x01, 0x90, 0x48, 0x8b, 0x06];
        assert_eq!(address_at(&jump, 3), Some(SI));
    }

    #[test]
    fn code_cut_short_yields_nothing() {
        assert_eq!(address(&[]), None);
        assert_eq!(address(&[0x48, 0x8b, 0x44]), None);
    }
}
