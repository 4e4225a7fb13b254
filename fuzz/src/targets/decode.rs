//! Data addresses of sampled instructions: the address of the code (8 bytes), the sampled byte
//! (1), a number that fills the registers (8), then the code.

use isotherm_decode::{Architecture, Registers, Window, access};

use super::seeds::Seeds;

/// Registers that perf numbers on either architecture.
const REGISTERS: u8 = 33;

pub(crate) fn check(data: &[u8]) -> bool {
    let Some((head, code)) = data.split_first_chunk::<17>() else {
        return false;
    };
    let number = |at: usize| {
        let bytes = head[at..].first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(bytes)
    };
    let start = number(0);
    let window = Window {
        code,
        start,
        ip: start.wrapping_add(u64::from(head[8])),
    };
    let mut registers = Registers::NONE;
    for register in 0..REGISTERS {
        registers.set(register, number(9).rotate_left(u32::from(register)));
    }
    let mut found = false;
    for architecture in [Architecture::X86, Architecture::Arm64] {
        let Some(operand) = access(architecture, &window).map(|found| found.operand) else {
            continue;
        };
        found = true;
        let needed = [operand.base, operand.index.map(|index| index.register)];
        assert!(
            needed
                .iter()
                .flatten()
                .all(|register| *register < REGISTERS)
        );
        assert!(
            operand.address(&registers).is_some(),
            "all registers are known"
        );
        if needed == [None, None] && !operand.narrow {
            assert_eq!(
                operand.address(&Registers::NONE),
                Some(operand.displacement)
            );
        }
    }
    found
}

/// A few instructions of each architecture, the sample in their middle.
pub(crate) fn seeds() -> Seeds {
    let window = |ip: u8, code: &[u8]| {
        let mut bytes = 0x40_1000_u64.to_le_bytes().to_vec();
        bytes.push(ip);
        bytes.extend(0x7f00_0000_1000_u64.to_le_bytes());
        bytes.extend(code);
        bytes
    };
    // mov rax,[rdi+rcx*8]; add rcx,1; cmp rcx,rdx; jne back to the start
    let x86 = [
        0x48, 0x8b, 0x04, 0xcf, 0x48, 0x83, 0xc1, 0x01, 0x48, 0x39, 0xd1, 0x75, 0xf3,
    ];
    // vpsrldq zmm2,[rdi+rcx*4+64],4; kmovd eax,k0; nop
    let vector = [
        0x62, 0xf1, 0x6d, 0x48, 0x73, 0x5c, 0x8f, 0x01, 0x04, 0xc5, 0xfb, 0x93, 0xc0, 0x90,
    ];
    // ldr x0,[x1,x2,lsl #3]; add x2,x2,#1; cmp x2,x3; b.ne back to the start
    let arm64: Vec<u8> = [0xf862_7820_u32, 0x9100_0442, 0xeb03_005f, 0x54ff_ffa1]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    vec![
        ("x86", window(4, &x86)),
        ("vector", window(9, &vector)),
        ("arm64", window(4, &arm64)),
    ]
}
