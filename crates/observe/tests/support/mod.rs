//! What the tests of this crate share. Each test binary uses a part of it.
#![allow(dead_code)]

pub(crate) mod program;
pub(crate) mod session;
