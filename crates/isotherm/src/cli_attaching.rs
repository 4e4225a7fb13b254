//! `Attaching` declares `--pid` and `--for`, the flags by which `isotherm record` profiles a process that runs already.

use clap::Args;
use isotherm_model::units::Nanos;

use crate::time_limit;

/// A process that runs already.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Attaching {
    /// Profile this process, which runs already, in place of a program: its threads, and what it starts from now on, until Ctrl-C, for the time of
    /// --for, or until it ends. It is neither stopped nor changed
    #[arg(
        long,
        value_name = "PID",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["words", "isolate", "depth", "allocation_interval"]
    )]
    pub pid: Option<u32>,
    /// With --pid: end after this time; the process runs on
    #[arg(
        long = "for",
        value_name = "TIME",
        requires = "pid",
        conflicts_with = "words",
        value_parser = time_limit::read
    )]
    pub span: Option<Nanos>,
}
