//! Moves memory under load: the proof that no data is lost, and measurements of its speed.
//!
//! ```text
//! movement stress --seconds 10      writers, readers, forks, kills and direct I/O while everything moves
//! movement stress --canary          the same with a way that is known to lose writes: must be caught
//! movement outside PID              moves all of another process's pages, until it is killed
//! movement copy | stall | plan      figures as JSON, for bench/run movement
//! ```
//!
//! A separate package, because it forks, locks and maps in ways that no crate of the product needs. One static
//! binary, so that it also runs in a virtual machine of several nodes.

mod area;
mod copy;
mod crowd;
mod direct;
mod field;
mod forks;
mod movers;
mod out_and_back;
mod outside;
mod page;
mod plan;
mod output;
mod rereading;
mod stall;
mod stress;
mod two_copies;
mod ways;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Moves memory under load: the proof that nothing is lost, and figures")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run writers, readers, forks, kills and direct I/O while all memory moves; fail on a lost word
    Stress(stress::StressArgs),
    /// Move all pages of a process to and fro until it is killed
    Outside(outside::OutsideArgs),
    /// Measure how fast idle memory is moved, beside memcpy
    Copy(copy::CopyArgs),
    /// Measure how long writers wait
    Stall(stall::StallArgs),
    /// Measure our own cost of planning a million page moves
    Plan(plan::PlanArgs),
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Stress(args) => stress::run(&args),
        Command::Outside(args) => outside::run(&args),
        Command::Copy(args) => copy::run(&args),
        Command::Stall(args) => stall::run(&args),
        Command::Plan(args) => plan::run(&args),
    }
}
