//! Tests that need memory nodes, in virtual machines that have them.
//!
//! One program plays both parts. On the host it lists the tests, boots each topology once and runs every test
//! there; in the guest, called with `--in-guest NAME`, it is the test. So a test is an ordinary function that
//! panics on a failure, and may use any crate of the workspace.

mod colocation;
mod commands;
mod compressed;
mod daemon;
mod ending;
mod energy;
mod figures;
mod floors;
mod group_limits;
mod interface;
mod kernel;
mod limit;
mod moving;
mod nodes;
mod placement;
mod promotion;
mod splits;
mod stand;
mod terminal;
mod top;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test and its topologies.
struct GuestTest {
    name: &'static str,
    /// Names of topologies: the test runs on each.
    on: &'static [&'static str],
    /// Left to the long set.
    long: bool,
    run: fn(),
}

/// A test that is named after its function.
macro_rules! on {
    ($topologies:expr, $function:ident) => {
        $crate::GuestTest {
            name: stringify!($function),
            on: $topologies,
            long: false,
            run: $function,
        }
    };
    (long $topologies:expr, $function:ident) => {
        $crate::GuestTest {
            long: true,
            ..on!($topologies, $function)
        }
    };
}
pub(crate) use on;

/// Topologies of single tests, beside [`EVERYWHERE`].
const SPECIAL: &[&str] = &["memory-module"];

const EVERYWHERE: &[&str] = &["two-nodes", "three-tiers", "full-fast-node", "no-hmat"];

fn all() -> impl Iterator<Item = &'static GuestTest> {
    [
        nodes::TESTS,
        placement::TESTS,
        moving::TESTS,
        commands::TESTS,
        daemon::TESTS,
        figures::TESTS,
        limit::TESTS,
        floors::TESTS,
        colocation::TESTS,
        interface::TESTS,
        compressed::TESTS,
        group_limits::TESTS,
        energy::TESTS,
        promotion::TESTS,
        splits::TESTS,
    ]
    .into_iter()
    .flatten()
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, option, name] = &words[..]
        && option == stand::IN_GUEST
    {
        return in_guest(name);
    }
    let mut arguments = Arguments::from_args();
    // A guest ends with the thread that booted it, and uses all processors by itself.
    arguments.test_threads = Some(1);
    let conclusion = libtest_mimic::run(&arguments, trials());
    conclusion.exit_code()
}

/// Topology by topology, so that only one guest runs at a time and none is booted twice.
fn trials() -> Vec<Trial> {
    let stand = stand::Stand::shared();
    let trial = |topology: &'static str, test: &'static GuestTest| {
        let stand = stand.clone();
        let name = format!("{topology}::{}", test.name);
        Trial::ignorable_test(name, move || stand::run(&stand, topology, test.name))
            .with_ignored_flag(test.long)
    };
    let in_guests = EVERYWHERE
        .iter()
        .chain(SPECIAL)
        .flat_map(|topology| {
            all()
                .filter(move |test| test.on.contains(topology))
                .map(move |test| (*topology, test))
        })
        .map(|(topology, test)| trial(topology, test));
    in_guests.chain(ending::trials()).collect()
}

fn in_guest(name: &str) -> ExitCode {
    if name == placement::TAKE_TOO_MUCH {
        placement::take_too_much();
        return ExitCode::SUCCESS;
    }
    if name == compressed::RANDOM_MEMORY {
        compressed::random_memory();
        return ExitCode::SUCCESS;
    }
    if name == compressed::COLD_MEMORY {
        compressed::cold_memory();
        return ExitCode::SUCCESS;
    }
    let Some(test) = all().find(|test| test.name == name) else {
        eprintln!("there is no test {name}");
        return ExitCode::FAILURE;
    };
    kernel::join_free_memory();
    match std::panic::catch_unwind(test.run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) if why.is::<Skipped>() => ExitCode::from(stand::SKIPPED),
        // A failed assertion ends the process with status 101 and its message on standard error.
        Err(why) => std::panic::resume_unwind(why),
    }
}

/// The panic value of a test that proves nothing.
struct Skipped;

/// Ends a test in the guest that proves nothing there, with the reason. Its processes end with it, as after a
/// failure: the next test in this guest must not meet a daemon of this one.
fn skip(reason: &str) -> ! {
    println!("{reason}");
    std::panic::resume_unwind(Box::new(Skipped))
}
