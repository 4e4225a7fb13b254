//! The targets under libFuzzer; `fuzz/run` builds and starts this with the target's name in the
//! environment.
#![no_main]

use std::io::Write as _;
use std::sync::{LazyLock, Mutex};

use isotherm_fuzz::campaign::survive;
use isotherm_fuzz::{Target, target};

/// The target, looked up once.
static CHOSEN: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("ISOTHERM_FUZZ_TARGET").unwrap_or_default();
    let chosen = target(&name).unwrap_or_else(|| {
        let what = "there is no such target; see fuzz/run --list";
        let _ = writeln!(std::io::stderr(), "ISOTHERM_FUZZ_TARGET={name}: {what}");
        std::process::exit(2);
    });
    // libfuzzer-sys ends the program at every panic. The reader of profiles catches those of the
    // Parquet decoder, and that is no fault.
    std::panic::set_hook(Box::new(|panic| {
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = panic.to_string();
        }
    }));
    chosen
});

/// What the last panic said, with its place in the source.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if survive(*CHOSEN, data).is_err() {
        let last = LAST_PANIC.lock().map(|last| last.clone());
        let last = last.unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "{}: {last}", CHOSEN.name);
        std::process::abort();
    }
});
