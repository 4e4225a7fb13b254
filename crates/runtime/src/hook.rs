//! Exports the functions of the C library, C++ and jemalloc that the runtime replaces, each as a shim in assembly that jumps to the
//! implementation in another module. Where that needs its caller, the shim adds the return address and the stack pointer, which Rust cannot
//! get; those of `malloc`, `calloc` and the functions that free jump to jemalloc itself where the runtime has nothing to do. Only the
//! implementation of `dlclose` is here; `syscall` is in [`crate::process_hooks`] as a whole.
//!
//! The caller is in two more arguments, and the Rust function returns directly to the program. Shims marked `direct` jump to jemalloc itself
//! while the runtime passes everything through; those that free do so in guided runs as well. A test checks the exported names against
//! `exports.txt`.

use core::ffi::c_void;

use crate::block;
#[cfg(target_arch = "x86_64")]
use crate::entry::by_caller;
use crate::fast_path::{FastPathState, HOT};
use crate::heap;
use crate::instance;
use crate::jemalloc_api;
use crate::mapping_hooks;
use crate::next_symbol::Next;
use crate::operators;
use crate::process_hooks;
use crate::signal_hooks;
use crate::stack;

/// Makes the shim of one function: `name, arguments => body`, or with the direct path, which [`by_caller`] has on x86-64.
macro_rules! hooks {
    ($(
        $(#[$direct:ident $plain:path])?
        $name:ident($count:tt) => $body:path;
    )*) => {
        $( hooks!(@shim $name $count $body $(, $plain)?); )*
    };
    // The two extra arguments use the next argument registers.
    (@shim $name:ident 1 $body:path $(, $plain:path)?) => { hooks!(@make $name $body, "rsi", "rdx", "x1", "x2" $(, $plain)?); };
    (@shim $name:ident 2 $body:path $(, $plain:path)?) => { hooks!(@make $name $body, "rdx", "rcx", "x2", "x3" $(, $plain)?); };
    (@shim $name:ident 3 $body:path $(, $plain:path)?) => { hooks!(@make $name $body, "rcx", "r8", "x3", "x4" $(, $plain)?); };
    (@make $name:ident $body:path, $address:literal, $stack:literal, $arm_address:literal, $arm_stack:literal) => {
        #[unsafe(naked)]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "C++ names the operators")]
        unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                concat!("mov ", $address, ", qword ptr [rsp]"),
                concat!("lea ", $stack, ", [rsp + 8]"),
                "jmp {body}",
                body = sym $body,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                concat!("mov ", $arm_address, ", x30"),
                concat!("mov ", $arm_stack, ", sp"),
                "b {body}",
                body = sym $body,
            );
        }
    };
    (@make $name:ident $body:path, $address:literal, $stack:literal, $arm_address:literal, $arm_stack:literal, $plain:path) => {
        #[unsafe(naked)]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "C++ names the operators")]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "adrp x9, {state}",
                "ldrb w9, [x9, :lo12:{state}]",
                "cbnz w9, 2f",
                "b {plain}",
                "2:",
                concat!("mov ", $arm_address, ", x30"),
                concat!("mov ", $arm_stack, ", sp"),
                "b {body}",
                state = sym HOT,
                plain = sym $plain,
                body = sym $body,
            );
        }
    };
}

#[cfg(target_arch = "x86_64")]
by_caller!(
    malloc,
    malloc,
    instance::_je0_malloc,
    heap::malloc_hook,
    "rsi",
    "rdx"
);
#[cfg(target_arch = "x86_64")]
by_caller!(
    calloc,
    calloc,
    instance::_je0_calloc,
    heap::calloc_hook,
    "rdx",
    "rcx"
);

/// Makes the functions that free a block: each jumps to instance 0's `free` or to [`heap::free_hook`].
macro_rules! freeing_hooks {
    ($($name:ident)*) => { $(
        #[unsafe(naked)]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "C++ names the operators")]
        unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "cmp byte ptr [rip + {hot} + {in_first}], 0",
                "jne {first}",
                "jmp {body}",
                hot = sym HOT,
                in_first = const core::mem::offset_of!(FastPathState, frees_in_first),
                first = sym instance::_je0_free,
                body = sym heap::free_hook,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                "adrp x9, {hot}",
                "add x9, x9, :lo12:{hot}",
                "ldrb w9, [x9, {in_first}]",
                "cbz w9, 2f",
                "b {first}",
                "2:",
                "b {body}",
                hot = sym HOT,
                in_first = const core::mem::offset_of!(FastPathState, frees_in_first),
                first = sym instance::_je0_free,
                body = sym heap::free_hook,
            );
        }
    )* };
}

// free, and operator delete and delete[], whose sizes and alignments are not needed: a wrong one is harmless.
freeing_hooks! {
    free cfree _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t _ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t
}

#[cfg(not(target_arch = "x86_64"))]
hooks! {
    #[direct instance::_je0_malloc]
    malloc(1) => heap::malloc_hook;
    #[direct instance::_je0_calloc]
    calloc(2) => heap::calloc_hook;
}

hooks! {
    realloc(2) => heap::realloc_hook;
    reallocarray(3) => heap::reallocarray_hook;
    memalign(2) => heap::memalign_hook;
    aligned_alloc(2) => heap::memalign_hook;
    posix_memalign(3) => heap::posix_memalign_hook;
    valloc(1) => heap::valloc_hook;
    pvalloc(1) => heap::pvalloc_hook;
    malloc_usable_size(1) => block::usable_size;
    malloc_trim(1) => heap::trim;

    mallocx(2) => jemalloc_api::mallocx_hook;
    rallocx(3) => jemalloc_api::rallocx_hook;

    // operator new, new[] with their aligned and nothrow forms.
    _Znwm(1) => operators::new;
    _Znam(1) => operators::new;
    _ZnwmSt11align_val_t(2) => operators::new_aligned;
    _ZnamSt11align_val_t(2) => operators::new_aligned;
    _ZnwmRKSt9nothrow_t(2) => operators::new_nothrow;
    _ZnamRKSt9nothrow_t(2) => operators::new_nothrow;
    _ZnwmSt11align_val_tRKSt9nothrow_t(3) => operators::new_aligned_nothrow;
    _ZnamSt11align_val_tRKSt9nothrow_t(3) => operators::new_aligned_nothrow;
}

/// Makes exported functions that need no caller: a jump to the body.
macro_rules! plain_hooks {
    ($($name:ident => $body:path;)*) => {
        $(
            #[unsafe(naked)]
            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[allow(non_snake_case, reason = "the C library names it so")]
            unsafe extern "C" fn $name() {
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!("jmp {body}", body = sym $body);
                #[cfg(target_arch = "aarch64")]
                core::arch::naked_asm!("b {body}", body = sym $body);
            }
        )*
    };
}

plain_hooks! {
    mmap => mapping_hooks::mmap_hook;
    mmap64 => mapping_hooks::mmap_hook;
    munmap => mapping_hooks::munmap_hook;
    mremap => mapping_hooks::mremap_hook;
    mprotect => mapping_hooks::mprotect_hook;
    madvise => mapping_hooks::madvise_hook;
    dlclose => dlclose_and_forget;
    pthread_create => stack::pthread_create_hook;
    _Fork => process_hooks::fork_without_handlers;
    clone => process_hooks::clone_hook;
    unshare => process_hooks::unshare_hook;
    setns => process_hooks::setns_hook;
    prctl => process_hooks::prctl_hook;
    sigprocmask => signal_hooks::sigprocmask_hook;
    pthread_sigmask => signal_hooks::pthread_sigmask_hook;
    sigaction => signal_hooks::sigaction_hook;
    signal => signal_hooks::signal_hook;
    sigaltstack => signal_hooks::sigaltstack_hook;

    xallocx => jemalloc_api::xallocx_hook;
    sallocx => jemalloc_api::sallocx_hook;
    dallocx => jemalloc_api::dallocx_hook;
    sdallocx => jemalloc_api::sdallocx_hook;
    nallocx => jemalloc_api::nallocx_hook;
    mallctl => jemalloc_api::mallctl_hook;
    mallctlnametomib => jemalloc_api::_je0_mallctlnametomib;
    mallctlbymib => jemalloc_api::_je0_mallctlbymib;
    malloc_stats_print => jemalloc_api::_je0_malloc_stats_print;
}

/// `dlclose`: another module may reuse the addresses, so cached contexts are forgotten.
///
/// # Safety
/// As for the C function.
unsafe extern "C-unwind" fn dlclose_and_forget(handle: *mut c_void) -> i32 {
    // SAFETY: the C library's function has this type.
    static CLOSE: Next<unsafe extern "C-unwind" fn(*mut c_void) -> i32> =
        unsafe { Next::new(c"dlclose") };
    let Some(close) = CLOSE.get() else {
        return -1;
    };
    // SAFETY: the caller's promise; a destructor of the module may throw.
    let answer = unsafe { close(handle) };
    crate::context::forget_all();
    answer
}
