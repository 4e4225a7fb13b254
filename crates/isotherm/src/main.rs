//! Runs the command that the command line names, or the guard of a session directory, for which a run starts this program again. The
//! commands are under `commands`: they read arguments, call the stages, and print; other crates make the decisions.
#![forbid(unsafe_code)]

mod attached;
mod bandwidth_file;
mod chunk_plan;
mod cli;
mod cli_attaching;
mod cli_colocate;
mod cli_devices;
mod cli_diff;
mod cli_export;
mod cli_isolation;
mod cli_java;
mod cli_plan;
mod cli_sensitivity;
mod cli_tiers;
mod coloured_heap;
mod coloured_jvm;
mod coloured_plan;
mod command_line;
mod commands;
mod diagnostics;
mod emulated_machine;
mod emulation_words;
mod fit;
mod flag_values;
mod input;
mod interface_service;
mod interrupt;
mod java;
mod java_guide;
mod java_options;
mod known_values;
mod launch;
mod manual;
mod observed_run;
mod optimize_after;
mod optimizer;
mod output;
mod power_models;
mod profile_rate;
mod program;
mod program_signals;
mod python;
mod range_mover;
mod recording;
mod run_policies;
mod running_process;
mod sensitivity;
mod session_directory;
mod session_guard;
mod session_processes;
mod session_summary;
mod sharing;
mod site_names;
mod split;
mod static_data;
mod tiers_choice;
mod time_limit;
mod timed_runs;
mod together;

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use anyhow::Result;
use signal_hook::consts::SIGPIPE;

use crate::cli::Command;
use isotherm_console::{Console, ReaderGone};

fn main() -> ExitCode {
    if let Some(ended) = session_guard::as_guard() {
        return ended;
    }
    let words: Vec<_> = std::env::args_os().collect();
    let (cli, short_sizes) = match command_line::read(&words) {
        Ok(read) => read,
        Err(Ok(status)) => return status,
        Err(Err(error)) => return failed(&error),
    };
    let console = Console::new(cli.quiet);
    short_sizes.iter().for_each(|size| console.info(size));
    match dispatch(&cli.command, console) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(status)) => launch::end_as(status),
        Err(error) => failed(&error),
    }
}

/// Ends after a failure and prints it, unless the failure is a closed standard output.
fn failed(error: &anyhow::Error) -> ExitCode {
    if error.is::<ReaderGone>() {
        launch::end_as(ExitStatus::from_raw(SIGPIPE));
    }
    Console::new(false).error(&format!("{error:#}"));
    ExitCode::FAILURE
}

/// Runs a command. Commands that run a program return its exit status, interrupted ones return
/// the signal.
fn dispatch(command: &Command, console: Console) -> Result<Option<ExitStatus>> {
    match command {
        Command::Doctor { json } => commands::doctor::run(*json, console)?,
        Command::Tiers(args) => return commands::tiers::run(args, console),
        Command::Sites(args) => commands::sites::run(args, console)?,
        Command::Record(args) if args.isolating.isolate.is_some() => {
            return commands::isolation::run(args, console).map(Some);
        }
        Command::Record(args) => match args.attaching.pid {
            Some(pid) => commands::record_running::run(args, pid, console)?,
            None => return commands::record::run(args, console).map(Some),
        },
        Command::Import(args) => commands::import::run(args, console)?,
        Command::Plan(args) => commands::plan::run(args, console)?,
        Command::Run(args) => return commands::run::run(args, console).map(Some),
        Command::Explain { plan, site } => commands::explain::run(plan, site)?,
        Command::Colocate(args) => return commands::colocate::run(args, console),
        Command::Sensitivity(args) => return commands::sensitivity::run(args, console),
        Command::Merge(args) => commands::merge::run(args, console)?,
        Command::Report(args) => commands::report::run(args, console)?,
        Command::Diff(args) => return commands::diff::run(args, console),
        Command::Simulate(args) => commands::simulate::run(args, console)?,
        Command::FitBandwidth(args) => commands::fit_bandwidth::run(args, console)?,
        Command::Curve(args) => commands::curve::run(args, console)?,
        Command::Compare(args) => return commands::compare::run(args, console),
        Command::Daemon(args) => commands::daemon::run(args, console)?,
        Command::Status(args) => commands::status::run(args, console)?,
        Command::Top { socket } => return commands::top::run(socket),
        Command::Completions { shell } => commands::handbook::completions(*shell)?,
        Command::Man { directory } => commands::handbook::man(directory)?,
    }
    Ok(None)
}
