//! A thread that is no thread of the C library.
