//! The targets under libFuzzer; `fuzz/run` builds and starts this with the target's name in the
//! environment.
#![no_main]

use std::sync::LazyLock;

use isotherm_fuzz::{Target, target};

/// The target, looked up once.
static CHOSEN: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("ISOTHERM_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        eprintln!("ISOTHERM_FUZZ_TARGET={name}: there is no such target; see fuzz/run --list");
        std::process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (CHOSEN.check)(data);
});
