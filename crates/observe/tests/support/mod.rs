//! Code shared by the tests of this crate. Each test binary uses a part of it.
#![allow(dead_code)]

pub(crate) mod program;
#[path = "../../../session/tests/support/session_bytes.rs"]
pub(crate) mod session_bytes;
