//! `JavaHeapChoice` declares the flags of `isotherm run` for Java programs on a heap with colours, which keeps hot and cold objects apart.

use std::path::PathBuf;

use clap::Args;
use isotherm_model::units::Nanos;

use crate::input;

/// Flags that a run on a heap with colours does not take, because they place data by other means.
const OTHER_RUNS: [&str; 6] = [
    "mover",
    "policy",
    "optimize_after",
    "slowdown",
    "unit",
    "undo",
];

/// Whether a run has a Java heap with colours.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JavaHeapChoice {
    /// Run a Java program on a heap with colours: the virtual machine that `make java-heap` builds takes the place of `java`, the program
    /// (docs/java-heap.md). By a plan the objects of each site are stored as it says. Without one the classes with the most accesses for each
    /// byte are fast, as the run finds them, and with --remap hot objects are on as many memory devices as their bandwidth needs
    #[arg(long, conflicts_with_all = OTHER_RUNS)]
    pub java: bool,
    /// With --java: the folder of that virtual machine's JDK [default: that of the program, if it is `java` of such a JDK; else lib/isotherm/jdk
    /// where Isotherm is installed, and build/java/jdk of the clone that it was built in]
    #[arg(long, value_name = "DIRECTORY", requires = "java")]
    pub java_home: Option<PathBuf>,
    /// With --java, without a plan: the virtual machine chooses the colours by the call stacks of the program's threads, which it samples
    /// without stopping them. A class is cold when no sampled method has accessed its objects for this time [without a value: 100ms]
    #[arg(
        long,
        value_name = "TIME",
        requires = "java",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "100ms",
        conflicts_with_all = ["plan", "remap", "dry_run"],
        value_parser = input::cooling
    )]
    pub java_stacks: Option<Nanos>,
}
