//! Converts the number of a general register in an x86 instruction to its number in the registers of a perf sample.

/// The number in `arch/x86/include/uapi/asm/perf_regs.h` of the general register with this number in an instruction: ax,
/// cx, dx, bx, sp, bp, si, di, r8 to r15.
pub(super) fn perf_number(encoded: u8) -> Option<u8> {
    const NUMBERS: [u8; 16] = [0, 2, 3, 1, 7, 6, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23];
    NUMBERS.get(usize::from(encoded)).copied()
}
