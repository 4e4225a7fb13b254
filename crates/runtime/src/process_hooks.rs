//! Hooks the ways to make a process that bypass the C library's fork handlers (`syscall` with a `fork` or `clone`, `clone` without shared
//! memory, and `_Fork`), to bring pages that the emulation or a move keeps elsewhere back before; `unshare` and `setns`, of which the
//! kernel refuses some to a process of several threads, to pause the runtime's own threads; and `prctl`, by which a program begins to
//! filter its system calls, to end the emulation's timer of the thread, measure resident memory for the last time and note the filter.
//!
//! The kernel gives such a child a copy of the memory, in which pages that the trap or a mover has taken away
//! would read as zeroes, with no service. So every page is brought home before, and the child starts its own
//! service where the trap runs, as over a `fork`. The locks are not taken: the child of a program of several
//! threads may not allocate here without Isotherm either, and a signal handler may make such a call.

use core::ffi::{c_int, c_long, c_void};

use isotherm_sys::system_call::{Errno, Result, call};

use crate::delay;
use crate::emulation;
use crate::errno::{answer, answer_number, errno, set_errno};
use crate::fork;
use crate::mover_lock;
use crate::next_symbol::Next;
use crate::placement;
use crate::resident;
use crate::session;
use crate::staged;

/// The first fields of `clone3`'s argument.
const CLONE3_BYTES: usize = 64;

/// `syscall`, as in the C library, except for the calls that make a process while pages may be away. Calls that
/// share the memory go straight on, because their child may return first on this same stack.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        "cmp rdi, {clone3}",
        "je 3f",
        "cmp rdi, {fork}",
        "je 3f",
        "cmp rdi, {clone}",
        "jne 2f",
        "test esi, {shares_memory}",
        "jz 3f",
        "2:",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 4f",
        "ret",
        "4:",
        "mov rdi, rax",
        "jmp {fail}",
        "3:",
        "cmp byte ptr [rip + {away}], 0",
        "je 2b",
        "jmp {make}",
        clone3 = const libc::SYS_clone3,
        fork = const libc::SYS_fork,
        clone = const libc::SYS_clone,
        shares_memory = const libc::CLONE_VM,
        away = sym placement::AWAY,
        fail = sym fail,
        make = sym make_process,
    );
}

/// `syscall`, as on x86-64.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        "cmp x0, {clone3}",
        "b.eq 3f",
        "cmp x0, {clone}",
        "b.ne 2f",
        "tst w1, {shares_memory}",
        "b.eq 3f",
        "2:",
        "mov x8, x0",
        "mov x0, x1",
        "mov x1, x2",
        "mov x2, x3",
        "mov x3, x4",
        "mov x4, x5",
        "mov x5, x6",
        "svc 0",
        "cmn x0, 4095",
        "b.hs 4f",
        "ret",
        "4:",
        "b {fail}",
        "3:",
        "adrp x9, {away}",
        "ldrb w9, [x9, :lo12:{away}]",
        "cbz w9, 2b",
        "b {make}",
        clone3 = const libc::SYS_clone3,
        clone = const libc::SYS_clone,
        shares_memory = const libc::CLONE_VM,
        away = sym placement::AWAY,
        fail = sym fail,
        make = sym make_process,
    );
}

/// The result of the C library's `syscall` where the kernel refused: `answer` is the kernel's, an error number
/// below 0.
extern "C" fn fail(answer: isize) -> usize {
    answer_number(Err(Errno::from_raw_os_error(-answer as c_int)))
}

/// Makes a process by a system call.
///
/// # Safety
/// As for the system call.
unsafe extern "C" fn make_process(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> usize {
    let arguments = [first, second, third, fourth, fifth];
    // SAFETY: the caller's promise.
    let make = || unsafe { call(number, arguments) };
    // SAFETY: the program passes an argument of the size that it states.
    let made = if unsafe { copies_memory(number, first, second) } {
        at_home(make)
    } else {
        make()
    };
    answer_number(made)
}

/// Whether the child gets a copy of the memory and returns on a copy of this stack.
///
/// # Safety
/// The argument of `clone3` has the length in `second`.
unsafe fn copies_memory(number: c_long, first: usize, second: usize) -> bool {
    if number != libc::SYS_clone3 {
        return true;
    }
    if first == 0 || second < CLONE3_BYTES {
        return false;
    }
    let arguments = core::ptr::with_exposed_provenance::<u64>(first);
    // SAFETY: the caller's promise. Flags are the first of eight fields, the stack is the sixth.
    unsafe {
        arguments.read_unaligned() & libc::CLONE_VM as u64 == 0
            && arguments.add(5).read_unaligned() == 0
    }
}

/// Makes a process while every page is at home, and starts a child's own service.
fn at_home(make: impl FnOnce() -> Result<usize>) -> Result<usize> {
    if !placement::may_be_away() {
        return make();
    }
    fork::bring_home();
    let made = make();
    if made == Ok(0) {
        fork::start_over();
    } else {
        fork::let_go();
    }
    made
}

/// Flags that the kernel grants only to a process of one thread.
const ALONE: c_int =
    libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD | libc::CLONE_NEWUSER;

/// `unshare`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn unshare_hook(flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let work = || unsafe { call(libc::SYS_unshare, [flags as usize]) };
    answer_alone(flags & ALONE != 0, work)
}

/// `setns`: the namespace may be one of users, whatever the kind argument states.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn setns_hook(descriptor: c_int, kind: c_int) -> c_int {
    let arguments = [descriptor as usize, kind as usize];
    // SAFETY: the caller's promise.
    let work = || unsafe { call(libc::SYS_setns, arguments) };
    answer_alone(kind == 0 || kind & ALONE != 0, work)
}

/// Makes a system call, if needed while the program's only thread is the process's only one.
fn answer_alone(needs: bool, work: impl FnOnce() -> Result<usize>) -> c_int {
    // The others are ours; where the program has more the kernel refuses, as it does without Isotherm.
    let alone = needs && placement::may_be_away() && mover_lock::program_has_one_thread();
    if !alone {
        return answer(work().map(|_| ()));
    }
    let before = errno();
    let done = match emulation::runs() {
        true => emulation::pause_for(session::tables(), work),
        false => staged::pause_for(work),
    };
    set_errno(before);
    answer(done.map(|_| ()))
}

/// `_Fork`, Linux with the GNU C library 2.34.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn fork_without_handlers() -> c_int {
    // SAFETY: the C library's function has this type.
    static FORK: Next<unsafe extern "C" fn() -> c_int> = unsafe { Next::new(c"_Fork") };
    let Some(fork) = FORK.get() else {
        return answer(Err(Errno::NOSYS));
    };
    // SAFETY: the caller's promise. The C library sets `errno` itself.
    let made = at_home(|| match unsafe { fork() } {
        -1 => Err(Errno::from_raw_os_error(errno())),
        pid => Ok(pid as usize),
    });
    answer_number(made) as c_int
}

/// `prctl`: detects when the program begins to filter its system calls. Most programs give up new privileges
/// first, because the kernel requires that of all but root.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn prctl_hook(
    option: c_int,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> c_int {
    if matches!(option, libc::PR_SET_SECCOMP | libc::PR_SET_NO_NEW_PRIVS) {
        delay::leave_thread();
        resident::before_sandbox();
    }
    let arguments = [option as usize, second, third, fourth, fifth];
    // SAFETY: the caller's promise.
    answer_number(unsafe { call(libc::SYS_prctl, arguments) }) as c_int
}

/// The function that the child of [`clone_hook`] runs.
type Entry = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The function and the argument that the program gave [`clone_hook`].
struct Start {
    function: Entry,
    argument: *mut c_void,
}

/// Starts the service in a child that has a copy of the memory, and then the program's function.
unsafe extern "C" fn start_child(start: *mut c_void) -> c_int {
    fork::start_over();
    // SAFETY: it lies on the parent's stack, of which the child has a copy.
    let Start { function, argument } = unsafe { start.cast::<Start>().read() };
    // SAFETY: the program's own function and argument.
    unsafe { function(argument) }
}

/// The C library's `clone`, which takes the last three arguments if flags say so.
type Clone = unsafe extern "C" fn(
    Option<Entry>,
    *mut c_void,
    c_int,
    *mut c_void,
    usize,
    usize,
    usize,
) -> c_int;

/// `clone`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn clone_hook(
    function: Option<Entry>,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent: usize,
    storage: usize,
    child: usize,
) -> c_int {
    // SAFETY: the C library's function has this type.
    static CLONE: Next<Clone> = unsafe { Next::new(c"clone") };
    let Some(clone) = CLONE.get() else {
        return answer(Err(Errno::NOSYS));
    };
    let copies = flags & libc::CLONE_VM == 0 && placement::may_be_away();
    let Some(function) = function.filter(|_| copies) else {
        // SAFETY: the caller's promise.
        return unsafe { clone(function, stack, flags, argument, parent, storage, child) };
    };
    let mut start = Start { function, argument };
    fork::bring_home();
    let start = (&raw mut start).cast();
    // SAFETY: the caller's promise; the child has a copy of this frame.
    let pid = unsafe {
        clone(
            Some(start_child),
            stack,
            flags,
            start,
            parent,
            storage,
            child,
        )
    };
    fork::let_go();
    pid
}
