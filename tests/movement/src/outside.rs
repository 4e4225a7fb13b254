//! Moves all memory of another process, of which it knows only the number; the proof kills such movers at random moments.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use isotherm_act::movement::limit::{Allowance, Limit};
use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::system::Kernel;
use isotherm_model::batch::Process;
use isotherm_model::movement::NodeId;
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_movement::statistics::Totals;
use isotherm_movement::{nodes, whole_process};
use isotherm_observe::clock::MachineClock;

use crate::output::say;

#[derive(Debug, Args)]
pub struct OutsideArgs {
    /// Process to move
    process: u32,
}

/// Moves all of the process from node to node until one of the two is killed.
pub fn run(args: &OutsideArgs) -> Result<()> {
    let process = Process {
        pid: args.process,
        image: 0,
    };
    let allowance = Allowance {
        bytes_a_second: Bytes(1 << 30),
        time_a_second: Nanos(500_000_000),
    };
    let migration = Migration::new(Kernel::default());
    let mut executor = Limit::new(migration, MachineClock, allowance);
    let mut totals = Totals::default();
    for node in nodes::with_memory().into_iter().cycle() {
        let Ok(actions) = whole_process::actions(process, NodeId(node)) else {
            break;
        };
        executor
            .execute(&actions)
            .iter()
            .for_each(|it| totals.add(it));
        if totals.asked().0 == 0 {
            break;
        }
    }
    say(format_args!("{totals:?}"));
    Ok(())
}

/// Starts such a mover on this process, kills it at a random moment, and repeats; returns the number of kills.
pub fn start_and_kill(stop: &AtomicBool, seed: u64) -> Result<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut killed = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut child = start()?;
        std::thread::sleep(Duration::from_millis(random.u64(1..150)));
        child.kill().context("killing the mover outside")?;
        child.wait().context("waiting for the mover outside")?;
        killed += 1;
    }
    Ok(killed)
}

fn start() -> Result<Child> {
    let program = std::env::current_exe().context("finding this program")?;
    Command::new(program)
        .args(["outside", &std::process::id().to_string()])
        .stdout(Stdio::null())
        .spawn()
        .context("starting a mover outside")
}
