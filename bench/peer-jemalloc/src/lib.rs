//! Plain jemalloc under the C library's names. There is no code: cargo compiles jemalloc here, and
//! `bench/run` links the archive into a library to preload, so that no layer of ours is between a
//! program and its calls.
#![forbid(unsafe_code)]
