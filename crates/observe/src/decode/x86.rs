//! Memory operands of x86-64 instructions.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register,
    UsedMemory,
};

use super::{Extend, Index, Operand, Step};

/// Walks the instructions of a window of code.
pub(super) struct Steps<'a> {
    decoder: Decoder<'a>,
    info: InstructionInfoFactory,
}

impl<'a> Steps<'a> {
    pub(super) fn new(ip: u64, code: &'a [u8]) -> Self {
        Self {
            decoder: Decoder::with_ip(64, code, ip, DecoderOptions::NONE),
            info: InstructionInfoFactory::new(),
        }
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if !self.decoder.can_decode() {
            return None;
        }
        let instruction = self.decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let info = self.info.info(&instruction);
        let written = info
            .used_registers()
            .iter()
            .filter(|used| writes(used.access()))
            .filter_map(|used| number(used.register()))
            .fold(0, |set, register| set | 1 << register);
        Some(Step {
            operand: best(&instruction, info.used_memory()),
            written,
            ends_block: instruction.flow_control() != FlowControl::Next,
        })
    }
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
        // The displacement of a relative operand is its whole address already.
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
    use super::super::{Architecture, operand};
    use isotherm_sys::perf::record::Registers;

    const IP: u64 = 0x40_1000;

    /// The address computed from registers that each hold their own number times 2^20.
    fn address(code: &[u8]) -> Option<u64> {
        let mut registers = Registers::NONE;
        for number in (0..10).chain(16..24) {
            registers.set(number, u64::from(number) << 20);
        }
        operand(Architecture::X86, IP, code)?.address(&registers)
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
        // push [rdi]: what is read counts, the slot it goes to does not
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
    fn code_cut_short_yields_nothing() {
        assert_eq!(address(&[]), None);
        assert_eq!(address(&[0x48, 0x8b, 0x44]), None);
    }
}
