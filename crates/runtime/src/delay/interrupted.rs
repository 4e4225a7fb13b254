//! [`Interrupted`] reads the registers of a thread at a signal, and the code around its next instruction, to find the sampled access.

use core::ffi::c_void;

use isotherm_decode::Registers;

/// Bytes of a page: code is read in the page of the interrupted instruction only, which is certainly mapped.
const PAGE: usize = 4096;

/// The state of a thread where a signal interrupted it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted {
    /// Address of the next instruction.
    pub(crate) ip: u64,
    /// Registers as `asm/perf_regs.h` numbers them.
    pub(crate) registers: Registers,
}

impl Interrupted {
    /// Nowhere: a thread that no signal has interrupted.
    pub(crate) const NOWHERE: Self = Self {
        ip: 0,
        registers: Registers::NONE,
    };

    /// Reads the third argument of a signal handler.
    ///
    /// # Safety
    /// The pointer is the one that the kernel gave a handler with `SA_SIGINFO`.
    pub(crate) unsafe fn from_context(context: *const c_void) -> Self {
        // SAFETY: the caller's promise.
        let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
        let mut registers = Registers::NONE;
        for (number, value) in values(machine) {
            registers.set(number, value);
        }
        Self {
            ip: ip(machine),
            registers,
        }
    }

    /// The code around the next instruction, within its page, and the address of the code's first byte.
    pub(crate) fn code(&self) -> (&'static [u8], u64) {
        let ip = self.ip as usize;
        let page = ip & !(PAGE - 1);
        let start = page.max(ip.saturating_sub(isotherm_decode::BYTES_BEFORE));
        let end = (page + PAGE).min(ip.saturating_add(isotherm_decode::BYTES_AFTER));
        let bytes = core::ptr::with_exposed_provenance::<u8>(start);
        // SAFETY: the page holds the instruction that the thread executes next, so it is mapped; code is readable on these
        // architectures unless a program asks for code that it can only execute. Nothing writes it while it runs.
        let code = unsafe { core::slice::from_raw_parts(bytes, end - start) };
        (code, start as u64)
    }
}

#[cfg(target_arch = "x86_64")]
fn ip(machine: &libc::mcontext_t) -> u64 {
    machine.gregs[libc::REG_RIP as usize] as u64
}

/// The kernel's registers by their numbers in `asm/perf_regs.h`.
#[cfg(target_arch = "x86_64")]
fn values(machine: &libc::mcontext_t) -> impl Iterator<Item = (u8, u64)> + '_ {
    const ORDER: [(u8, libc::c_int); 16] = [
        (0, libc::REG_RAX),
        (1, libc::REG_RBX),
        (2, libc::REG_RCX),
        (3, libc::REG_RDX),
        (4, libc::REG_RSI),
        (5, libc::REG_RDI),
        (6, libc::REG_RBP),
        (7, libc::REG_RSP),
        (16, libc::REG_R8),
        (17, libc::REG_R9),
        (18, libc::REG_R10),
        (19, libc::REG_R11),
        (20, libc::REG_R12),
        (21, libc::REG_R13),
        (22, libc::REG_R14),
        (23, libc::REG_R15),
    ];
    ORDER
        .iter()
        .map(|(number, slot)| (*number, machine.gregs[*slot as usize] as u64))
}

#[cfg(target_arch = "aarch64")]
fn ip(machine: &libc::mcontext_t) -> u64 {
    machine.pc
}

/// The kernel's registers by their numbers in `asm/perf_regs.h`.
#[cfg(target_arch = "aarch64")]
fn values(machine: &libc::mcontext_t) -> impl Iterator<Item = (u8, u64)> + '_ {
    let general = (0..31).zip(machine.regs.iter().copied());
    general.chain([(31, machine.sp), (32, machine.pc)])
}
