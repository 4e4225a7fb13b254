//! Asks whether this process ignores a signal (`sigaction(2)`), and names the `si_code` of signals that the kernel sent: the commands do
//! not catch an ignored signal, nor pass on one that a key of the terminal sent to the program too.

use core::ffi::c_int;

/// `si_code` of a signal that the kernel sent, not a process: that of a terminal's key, which reaches the whole foreground process group.
pub const SENT_BY_KERNEL: c_int = libc::SI_KERNEL;

/// True if this process ignores the signal now; false for a number that is no signal.
///
/// A process starts with the signals ignored that its parent ignored: SIGHUP under `nohup`, SIGINT and SIGQUIT in the background
/// of a shell without job control.
#[must_use]
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all zeroes are a value of this type, which is numbers and an optional function only.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: without a new action the call changes nothing, and writes the present one to the local variable.
    let answer = unsafe { libc::sigaction(signal, core::ptr::null(), &raw mut action) };
    answer == 0 && action.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::is_ignored;

    #[test]
    fn an_ignored_signal_is_told_from_others() {
        // Rust's start ignores SIGPIPE, and no process can ignore SIGKILL.
        assert!(is_ignored(libc::SIGPIPE));
        assert!(!is_ignored(libc::SIGKILL));
        assert!(!is_ignored(-1), "no signal");
    }
}
