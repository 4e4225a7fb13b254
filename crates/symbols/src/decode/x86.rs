//! Decodes the memory operands of x86-64 instructions.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register,
    UsedMemory,
};

use super::instruction::{Decode, Extend, Flow, Index, Operand, Step, Window};

/// Decodes instructions; its tables are reused.
pub(super) struct Reader {
    info: InstructionInfoFactory,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            info: InstructionInfoFactory::new(),
        }
    }
}

/// Longest instruction, in bytes.
const LONGEST: usize = 15;

/// Bytes before an instruction that are searched for its predecessor. Decoding from a wrong byte
/// meets the right boundaries after a few instructions, nearly always within half of this.
const VOTERS: usize = 64;

impl Decode for Reader {
    fn step(&mut self, code: &[u8], address: u64) -> Option<Step> {
        let instruction = decode(code, address)?;
        let info = self.info.info(&instruction);
        let written = info
            .used_registers()
            .iter()
            .filter(|used| writes(used.access()))
            .filter_map(|used| number(used.register()))
            .fold(0, |set, register| set | 1 << register);
        Some(Step {
            length: instruction.len(),
            operand: best(&instruction, info.used_memory()),
            written,
            flow: match instruction.flow_control() {
                FlowControl::Next => Flow::Next,
                FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
                FlowControl::ConditionalBranch => Flow::Branch(instruction.near_branch_target()),
                _ => Flow::Unknown,
            },
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
    fn previous(&mut self, window: &Window<'_>, offset: usize) -> Option<usize> {
        let first = offset.saturating_sub(VOTERS);
        let mut predecessor: [Option<usize>; VOTERS] = [None; VOTERS];
        for at in (first..offset).rev() {
            let address = window.start.wrapping_add(at as u64);
            let code = &window.code[at..window.code.len().min(at + LONGEST)];
            let Some(instruction) = decode(code, address) else {
                continue;
            };
            let next = at + instruction.len();
            predecessor[at - first] = match next.cmp(&offset) {
                std::cmp::Ordering::Equal => Some(at),
                std::cmp::Ordering::Less => predecessor[next - first],
                std::cmp::Ordering::Greater => None,
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
}

fn decode(code: &[u8], address: u64) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instruction = decoder.can_decode().then(|| decoder.decode())?;
    (!instruction.is_invalid()).then_some(instruction)
}

const fn writes(access: OpAccess) -> bool {
    !matches!(
        access,
        OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
    )
}

const fn reads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// The operand that counts: the first that is read, else the first that is written.
fn best(instruction: &Instruction, used: &[UsedMemory]) -> Option<Operand> {
    let counts = |memory: &&UsedMemory| {
        let implied = instruction.is_stack_instruction() && memory.base() == Register::RSP;
        let local = matches!(memory.segment(), Register::FS | Register::GS);
        let touched = reads(memory.access()) || writes(memory.access());
        touched && !implied && !local
    };
    let read = used
        .iter()
        .filter(counts)
        .find(|memory| reads(memory.access()));
    read.or_else(|| used.iter().find(counts)).and_then(convert)
}

fn convert(memory: &UsedMemory) -> Option<Operand> {
    let base = match memory.base() {
        // The displacement of a relative operand is already its whole address.
        Register::None | Register::RIP | Register::EIP => None,
        register => Some(number(register)?),
    };
    let index = match memory.index() {
        Register::None => None,
        vector if vector.is_vector_register() => None,
        register => Some(Index {
            register: number(register)?,
            shift: memory.scale().trailing_zeros() as u8,
            extend: Extend::No,
        }),
    };
    let narrow = memory.base().is_gpr32() || memory.index().is_gpr32();
    Some(Operand {
        base,
        index,
        displacement: memory.displacement(),
        narrow,
    })
}

/// The register's number in `arch/x86/include/uapi/asm/perf_regs.h`.
fn number(register: Register) -> Option<u8> {
    Some(match register.full_register() {
        Register::RAX => 0,
        Register::RBX => 1,
        Register::RCX => 2,
        Register::RDX => 3,
        Register::RSI => 4,
        Register::RDI => 5,
        Register::RBP => 6,
        Register::RSP => 7,
        Register::R8 => 16,
        Register::R9 => 17,
        Register::R10 => 18,
        Register::R11 => 19,
        Register::R12 => 20,
        Register::R13 => 21,
        Register::R14 => 22,
        Register::R15 => 23,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Architecture, Window, operand};
    use isotherm_sys::perf::record::Registers;

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
        operand(Architecture::X86, &window)?.address(&registers)
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
