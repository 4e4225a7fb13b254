//! Prints the messages of the runtime to standard error: why it or a part of it is off and that it does not serve the program's
//! `isotherm.h`, each once a process, and single lines where [`isotherm_abi::env::VERBOSE`] is set ([`line()`]). A program's output must
//! not change, so nothing else is ever printed.

use core::ffi::c_int;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::BorrowedFd;

use isotherm_abi::interface::HEADER_VERSION;
use isotherm_abi::session::OffReason;

/// Longest sentence in bytes; the rest is cut.
const SENTENCE_BYTES: usize = 512;

/// A sentence on the stack, because nothing here may allocate.
struct Sentence {
    bytes: [u8; SENTENCE_BYTES],
    used: usize,
}

impl Write for Sentence {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = SENTENCE_BYTES - self.used;
        let taken = text.len().min(room);
        self.bytes[self.used..self.used + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.used += taken;
        Ok(())
    }
}

/// Writes one line to standard error.
pub(crate) fn line(arguments: fmt::Arguments<'_>) {
    let mut sentence = Sentence {
        bytes: [0; SENTENCE_BYTES],
        used: 0,
    };
    // A write into the buffer cannot fail; text that does not fit is cut.
    let _ = sentence.write_fmt(arguments);
    let _ = sentence.write_str("\n");
    // SAFETY: descriptor 2 is only borrowed for this call; if the program closed it, the kernel answers EBADF
    // and nothing is printed.
    let standard_error = unsafe { BorrowedFd::borrow_raw(2) };
    let _ = rustix::io::write(standard_error, &sentence.bytes[..sentence.used]);
}

/// The meaning of a reason and its remedy.
fn explanation(reason: OffReason) -> (&'static str, &'static str) {
    match reason {
        OffReason::None => ("no reason", "Nothing needs doing"),
        OffReason::NoAddressSpace => (
            "the address space for its pool could not be reserved",
            "Raise `ulimit -v`",
        ),
        OffReason::BadConfig => (
            "its configuration file is cut short or of another version",
            "Start the program through `isotherm run` or `isotherm record` of this version",
        ),
        OffReason::NoSession => (
            "its session file could not be written",
            "Free space in the session directory or raise `ulimit -f`",
        ),
        OffReason::NoUserfaultfd => (
            "userfaultfd is not allowed to serve the kernel's own accesses",
            "Run as root or set vm.unprivileged_userfaultfd=1",
        ),
        OffReason::NoUffdMove => (
            "the kernel cannot move pages through userfaultfd",
            "Use Linux 6.8 or later",
        ),
        OffReason::NoThread => ("its thread could not be started", "Raise `ulimit -u`"),
        OffReason::NoTimer => (
            "the kernel refuses a thread a timer of its own, so slow memory cannot be emulated by time",
            "Set kernel.perf_event_paranoid to 2 or less, or use --tiers emulated:tmp",
        ),
        OffReason::NoPlacement => (
            "the kernel refused to place memory on the nodes of a tier",
            "Check the tiers with `isotherm tiers`",
        ),
        OffReason::Foreign => (
            "its configuration belongs to another user, or others may write it",
            "A program is watched only as long as it acts for the user who started `isotherm`",
        ),
    }
}

/// Says, once a process, that the interface is closed to a program with this version of the header.
pub(crate) fn refused_header(version: c_int) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    let process = rustix::process::getpid().as_raw_nonzero();
    let first = HEADER_VERSION / 100 * 100;
    line(format_args!(
        "isotherm: process {process} has version {version} of isotherm.h, and this Isotherm serves versions {first} to {}: its names and \
         requests have no effect. Compile it with this Isotherm's header.",
        first + 99
    ));
}

/// Says, once a process, that Isotherm is off or gave something up.
pub(crate) fn off(reason: OffReason) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    let (why, remedy) = explanation(reason);
    let process = rustix::process::getpid().as_raw_nonzero();
    line(format_args!(
        "isotherm: off in process {process}: {why}. {remedy}."
    ));
}
