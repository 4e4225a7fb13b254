//! [`spawn`] starts a *bare* thread, which the C library does not know: raw `clone`, its own mapping for the stack, no malloc, no pthread.
//! The services of the runtime inside a program run on such threads: each closes its own copies of the program's descriptors and goes to
//! the root directory ([`settle_bare`]); a service ends the process once the program has no thread left ([`ProgramThreads`]). [`is_there`]
//! says whether a process has a thread, [`count`] how many this process has.
//!
//! The thread
//!
//! - blocks every signal, so that no handler of the program ever runs on it;
//! - has its **own table of descriptors**, emptied at the start: a program that closes every
//!   descriptor it does not know (daemons do) cannot take the service's away, and the numbers that
//!   the program's own `open` returns do not change;
//! - has its own working directory, the root, so that it keeps no mount busy;
//! - ends with the process: at `exit`, at `exec`, at a fatal signal. Where the program's last thread ends by
//!   the system call of one thread alone (`exit`, or a signal of a strict seccomp filter), the kernel keeps the
//!   process for this one, which therefore checks from time to time ([`ProgramThreads`]) and ends, too.
//!
//! It must not call libc functions that need thread-local storage, allocate, or unwind. A zeroed block takes
//! the place of thread-local storage, so that a stray `errno` is written to a harmless place instead of into
//! the storage of the thread that called [`spawn`].
//!
//! Visible to the program: an entry in `/proc/self/task`, and that `unshare` and `setns` of a user namespace
//! refuse a process of more than one thread.
//!
//! ```text
//! low                                                                     high
//! | guard | stack (grows down) <---- top | zeroes | thread pointer | zeroes |
//! ```

use core::ffi::c_void;
use core::num::NonZeroU64;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::descriptor::Descriptor;
use crate::memory;

/// Bytes of the guard below the stack.
const GUARD: usize = 64 << 10;
/// Bytes of zeroes on each side of the thread pointer. The C library's own thread-local variables
/// (`errno` among them) are within a few hundred bytes of it.
const STORAGE: usize = 16 << 10;

/// `CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS`: one memory, one process. Not
/// `CLONE_FILES` and not `CLONE_FS`: see the module's first lines.
const CLONE_FLAGS: u64 = 0x0000_0100 | 0x0000_0800 | 0x0001_0000 | 0x0008_0000;

/// The memory of a thread: stack and thread-local storage. It stays mapped when this is dropped, because a thread
/// cannot report that it left it: code that has checked that the thread is gone ([`is_there`]) calls [`Stack::unmap`].
#[derive(Debug)]
pub struct Stack {
    base: usize,
    top: usize,
    thread_pointer: usize,
}

impl Stack {
    /// Maps a stack of `bytes` (a multiple of the page size) with a guard below it.
    ///
    /// # Errors
    /// The error of `mmap` or `mprotect`, `ENOMEM` as a rule.
    pub fn map(bytes: usize) -> Result<Self, Errno> {
        let total = GUARD + bytes + 2 * STORAGE;
        let base = memory::fresh(total)?;
        // SAFETY: the first bytes of the mapping just made, which no code uses yet.
        unsafe { memory::protect(base, GUARD, libc::PROT_NONE)? };
        let top = base + GUARD + bytes;
        let thread_pointer = top + STORAGE;
        // On x86-64 the first word at the thread pointer, and the third, point to itself.
        for word in [0, 2] {
            // SAFETY: in bounds of the mapping, aligned, and not shared yet.
            unsafe {
                (thread_pointer as *mut usize)
                    .add(word)
                    .write(thread_pointer)
            };
        }
        Ok(Self {
            base,
            top,
            thread_pointer,
        })
    }

    /// Gives the memory back to the system.
    ///
    /// # Safety
    /// No thread runs on the stack, and none is started on it any more.
    pub unsafe fn unmap(self) {
        let bytes = self.thread_pointer + STORAGE - self.base;
        // SAFETY: the whole mapping that `map` made; by the caller's promise no thread uses it. Where the kernel
        // refuses (at its limit of mappings), the memory stays mapped.
        let _ = unsafe { memory::unmap(self.base, bytes) };
    }
}

/// The function of a bare thread.
pub type Entry = extern "C" fn(*mut c_void);

/// Starts a bare thread on `stack` and returns its thread number.
///
/// # Errors
/// The error of `clone`: `EAGAIN` at a limit of threads.
///
/// # Safety
/// No thread may be running on `stack`. `entry` must keep to the rules in the module's first
/// lines, and `argument` must stay valid for as long as it uses it.
pub unsafe fn spawn(stack: &Stack, entry: Entry, argument: *mut c_void) -> Result<i32, Errno> {
    let all = u64::MAX;
    let mut before = 0_u64;
    // The C library's wrappers leave its internal signals deliverable, hence the system call. The new thread
    // inherits the mask; ours is restored at once.
    set_signal_mask(&all, Some(&mut before));
    // SAFETY: the caller promises that the stack is free and that `entry` behaves.
    let answer = unsafe { clone_bare(stack.top, stack.thread_pointer, entry, argument) };
    set_signal_mask(&before, None);
    if answer < 0 {
        Err(Errno::from_raw_os_error(-answer as i32))
    } else {
        Ok(answer as i32)
    }
}

/// Gives the calling bare thread its name, an empty table of descriptors, the root as its working directory,
/// and the most exact timers of the kernel.
///
/// # Errors
/// `ENOSYS` from `close_range` before Linux 5.9. The descriptors are then still open, and the
/// caller must leave.
pub fn settle_bare(name: &core::ffi::CStr) -> Result<(), Errno> {
    // SAFETY: the table is this thread's own copy (no CLONE_FILES), so no other thread loses a descriptor. Only
    // integers are passed.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 0_u32, u32::MAX, 0_u32) };
    if closed != 0 {
        return Err(Errno::NOSYS);
    }
    // None of the three affects correctness if it fails.
    let _ = rustix::process::chdir(c"/");
    let _ = rustix::thread::set_name(name);
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    Ok(())
}

/// The file with which a bare thread checks whether it is the last one.
///
/// The first thread of a process stays as a zombie until the last one has ended, so a process with a zombie and
/// as many threads more as there are bare ones has only these left. Since Linux 5.19 a process takes the exit status of its last
/// thread, and that is a bare one now, so it takes over the status of the first thread. The status of another
/// thread that was the last one and left by the bare system call cannot be known.
#[derive(Debug)]
pub struct ProgramThreads {
    /// `/proc/self/stat`, opened early: the program may change its root. None without `/proc`, where the
    /// threads cannot be counted.
    status: Option<Descriptor>,
}

impl ProgramThreads {
    /// Opens the file. For a bare thread that has its own table of descriptors.
    #[must_use]
    pub fn open() -> Self {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Self {
            status: rustix::fs::open(c"/proc/self/stat", flags, Mode::empty())
                .ok()
                .map(Descriptor::from),
        }
    }

    /// Ends the process if the program has no thread any more. `bare` is the number of bare threads in the process,
    /// at least 1: the caller's and its helpers.
    pub fn end_with_them(&self, bare: usize) {
        let mut text = [0; STAT_BYTES];
        let read = |status| rustix::io::pread(status, &mut text[..], 0).ok();
        let read = self.status.as_ref().and_then(read).unwrap_or(0);
        if let Some(status) = ending(&text[..read], bare) {
            end(status);
        }
    }
}

/// Room for `/proc/<pid>/stat`: 52 numbers of at most 20 digits, and a name.
const STAT_BYTES: usize = 52 * 21 + 64;

/// The wait status of the first thread, if this text of `/proc/<pid>/stat` is that of a process whose first
/// thread is a zombie and has this many more. The name may hold spaces and parentheses, so the fields are
/// counted from the last one on.
fn ending(text: &[u8], bare: usize) -> Option<i32> {
    let name_end = text.iter().rposition(|&byte| byte == b')')?;
    let mut fields = text[name_end + 1..]
        .split(|&byte| byte == b' ')
        .filter(|field| !field.is_empty());
    // In proc(5) `state` is field 3, the first after the name, `num_threads` field 20, `exit_code` field 52.
    let is_zombie = fields.next()? == b"Z";
    let threads: usize = number(fields.nth(20 - 4)?)?;
    if !(is_zombie && threads == 1 + bare) {
        return None;
    }
    number(fields.nth(52 - 21)?)
}

fn number<N: core::str::FromStr>(field: &[u8]) -> Option<N> {
    core::str::from_utf8(field).ok()?.trim_end().parse().ok()
}

/// Ends this process with a wait status. The program's signal settings ended with its threads.
fn end(status: i32) -> ! {
    let signal = status & 0x7f;
    if signal != 0 {
        // Zeroes are the default action, no flags and an empty mask.
        let default = [0_u64; 4];
        // SAFETY: the kernel's structure has four words on both architectures, and its signal set one.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                core::ptr::null_mut::<u64>(),
                size_of::<u64>(),
            );
        }
        set_signal_mask(&0, None);
        // SAFETY: only integers are passed.
        unsafe { libc::syscall(libc::SYS_kill, libc::syscall(libc::SYS_getpid), signal) };
    }
    loop {
        // SAFETY: only an integer is passed. The call does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, (status >> 8) & 0xff) };
    }
}

/// Whether a process has a thread (`tgkill(2)` with no signal).
#[must_use]
pub fn is_there(process: i32, thread: i32) -> bool {
    // SAFETY: only integers are passed, and no signal is sent.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) == 0 }
}

/// Number of threads of this process; 1 where `/proc` does not report it.
#[must_use]
#[allow(
    clippy::useless_conversion,
    reason = "links are counted in 32 bits on aarch64"
)]
pub fn count() -> u64 {
    // A directory of directories has a link from each, one from its parent, and one from itself.
    rustix::fs::stat(c"/proc/self/task")
        .map_or(1, |task| u64::from(task.st_nlink).saturating_sub(2).max(1))
}

fn set_signal_mask(mask: &u64, before: Option<&mut u64>) {
    let before = before.map_or(core::ptr::null_mut(), core::ptr::from_mut);
    // SAFETY: the kernel's signal set is eight bytes on every 64-bit Linux; both pointers are null
    // or valid for that.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            core::ptr::from_ref(mask),
            before,
            size_of::<u64>(),
        )
    };
}

#[cfg(target_arch = "x86_64")]
unsafe fn clone_bare(top: usize, pointer: usize, entry: Entry, argument: *mut c_void) -> isize {
    let answer: isize;
    // SAFETY: the child has its own stack, gets all it needs in registers that clone keeps, and leaves by the
    // exit system call, never into this frame. In the parent, only the registers named here change.
    unsafe {
        core::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "xor edi, edi",
            "mov eax, 60",
            "syscall",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as isize => answer,
            in("rdi") CLONE_FLAGS,
            in("rsi") top & !15,
            in("rdx") 0,
            in("r10") 0,
            in("r8") pointer,
            in("r12") entry,
            in("r13") argument,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    answer
}

#[cfg(target_arch = "aarch64")]
unsafe fn clone_bare(top: usize, pointer: usize, entry: Entry, argument: *mut c_void) -> isize {
    let answer: isize;
    // SAFETY: as on x86-64; x20 and x21 survive clone, and the child leaves by exit (93).
    unsafe {
        core::arch::asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x21",
            "blr x20",
            "mov x0, xzr",
            "mov x8, #93",
            "svc 0",
            "brk #1",
            "2:",
            in("x8") libc::SYS_clone,
            inlateout("x0") CLONE_FLAGS as isize => answer,
            in("x1") top & !15,
            in("x2") 0_usize,
            in("x3") pointer,
            in("x4") 0_usize,
            in("x20") entry,
            in("x21") argument,
        );
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::{Stack, ending, settle_bare, spawn};
    use core::ffi::c_void;
    use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    #[test]
    fn a_zombie_with_bare_threads_alone_has_ended_and_nothing_else_has() {
        let line = |name, state, threads| {
            let rest = "0 99 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33";
            format!(
                "17 ({name}) {state} 1 2 3 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 {threads} {rest} 768\n"
            )
        };
        let status = |name, state, threads| ending(line(name, state, threads).as_bytes(), 1);
        // Field 52 is the 32nd after the number of threads.
        assert_eq!(line("a", "Z", 2).split(' ').count(), 52);
        assert_eq!(status("app", "Z", 2), Some(768));
        assert_eq!(status("a) Z 1 (b c", "Z", 2), Some(768));
        assert_eq!(status("app", "Z", 3), None, "another thread runs on");
        assert_eq!(status("app", "S", 2), None, "the first thread is there");
        assert_eq!(status("a) Z 1 (b c", "R", 2), None);
        assert_eq!(ending(b"", 1), None);
        assert_eq!(ending(b"17 (app) Z", 1), None);
        let with_helpers = |threads| ending(line("app", "Z", threads).as_bytes(), 8);
        assert_eq!(with_helpers(9), Some(768));
        assert_eq!(with_helpers(10), None, "another thread runs on");
    }

    struct Seen {
        done: AtomicU32,
        descriptors: AtomicU64,
        process: AtomicU32,
    }

    extern "C" fn look_around(argument: *mut c_void) {
        // SAFETY: the test keeps the value alive until `done` is set.
        let seen = unsafe { &*argument.cast::<Seen>() };
        let mut open = 0;
        if settle_bare(c"bare").is_ok() {
            // Each file that this thread opens gets the lowest number, because its table is empty.
            let file = rustix::fs::open(
                c"/dev/null",
                rustix::fs::OFlags::RDONLY,
                rustix::fs::Mode::empty(),
            );
            open = file.map_or(u64::MAX, |file| {
                let number = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
                core::mem::forget(file);
                number + 1
            });
        }
        seen.descriptors.store(open, Ordering::Relaxed);
        seen.process.store(
            rustix::process::getpid().as_raw_nonzero().get() as u32,
            Ordering::Relaxed,
        );
        seen.done.store(1, Ordering::Release);
    }

    #[test]
    fn a_bare_thread_runs_in_the_process_with_a_table_of_its_own() {
        let seen: &'static Seen = Box::leak(Box::new(Seen {
            done: AtomicU32::new(0),
            descriptors: AtomicU64::new(0),
            process: AtomicU32::new(0),
        }));
        let stack = Stack::map(64 << 10).expect("stack");
        // Used by this test alone: others open and close theirs meanwhile.
        let own = std::fs::File::open("/proc/self/status").expect("proc");
        // SAFETY: the stack is fresh, `look_around` keeps to the rules, `seen` is never freed.
        let thread = unsafe {
            spawn(
                &stack,
                look_around,
                core::ptr::from_ref(seen).cast_mut().cast(),
            )
        };
        assert!(thread.expect("clone") > 0);
        while seen.done.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(seen.process.load(Ordering::Relaxed), std::process::id());
        assert_eq!(
            seen.descriptors.load(Ordering::Relaxed),
            1,
            "its table was empty"
        );
        let text = std::io::read_to_string(own);
        assert!(
            text.is_ok_and(|text| text.starts_with("Name:")),
            "the program's own descriptors are as they were"
        );
    }
}
