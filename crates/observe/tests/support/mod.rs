//! Code shared by the tests of this crate. Each test binary uses a part of it.
#![allow(dead_code)]

pub(crate) mod program;
pub(crate) mod session;
