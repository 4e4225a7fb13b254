//! The macro [`for_origin`] makes the allocating functions for one kind of origin, by which an allocation finds its site
//! ([`crate::heap::Origin`]: the caller, or a record of the compiler pass); each takes its origin last, and calls a body that serves every
//! kind.

/// Makes functions that take the arguments of an allocation, then those of its origin, and call a body with both.
/// Each is unsafe as the function of the C library, of C++ or of jemalloc that it stands for; the origin is that of the call.
macro_rules! for_origin {
    ($of:tt => $origin:expr; $($abi:literal $name:ident $arguments:tt -> $result:ty => |$by:ident| $body:expr;)*) => {
        $( for_origin!(@one $of $origin; $abi $name $arguments $result; $by $body); )*
    };
    (@one ($($of:ident: $of_type:ty),*) $origin:expr;
        $abi:literal $name:ident ($($argument:ident: $type:ty),*) $result:ty; $by:ident $body:expr) => {
        #[allow(unused_unsafe, reason = "some of the bodies are safe")]
        pub(crate) unsafe extern $abi fn $name($($argument: $type,)* $($of: $of_type),*) -> $result {
            // SAFETY: the caller's promise.
            unsafe {
                let $by = $origin;
                $body
            }
        }
    };
}
pub(crate) use for_origin;
