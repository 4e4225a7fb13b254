//! The macro [`hidden`] gives Rust functions names for the linker that the library does not export: those that the copies of jemalloc call.

/// Gives Rust functions hidden names. `no_mangle` would export them, and they could catch another object's call.
macro_rules! hidden {
    ($($name:literal => $function:path,)*) => {
        $(
            #[cfg(target_arch = "x86_64")]
            core::arch::global_asm!(
                concat!(".text\n.globl ", $name, "\n.hidden ", $name, "\n.type ", $name, ",@function\n", $name, ":"),
                "jmp {function}",
                function = sym $function,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::global_asm!(
                concat!(".text\n.globl ", $name, "\n.hidden ", $name, "\n.type ", $name, ",%function\n", $name, ":"),
                "b {function}",
                function = sym $function,
            );
        )*
    };
}
pub(crate) use hidden;
