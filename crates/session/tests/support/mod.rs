//! Code shared by the tests of this crate.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod session_bytes;
