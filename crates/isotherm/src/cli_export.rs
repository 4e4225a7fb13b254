//! `Exporting` declares the flags of `isotherm report --export`, which writes the stacks of a profile (of allocations or of accessing code)
//! for flame graph tools, as folded lines, speedscope or pprof ([`ExportFormat`]). It refuses flags that the chosen format does not take.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use isotherm_report::stacks::{StackKind, StackWeight};

use crate::known_values::one_of;

/// A format of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A line for each stack.
    Folded,
    /// JSON.
    Speedscope,
    /// Protocol Buffers.
    Pprof,
}

/// How stacks are exported.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Exporting {
    /// Write stacks for another tool: `folded` (flamegraph.pl, inferno; to standard output), `speedscope` (all stacks by heat and by bytes;
    /// to the profile's name with .speedscope.json), or `pprof` (to the profile's name with .pb)
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, conflicts_with_all = ["text", "json", "power"])]
    pub export: Option<ExportFormat>,
    /// With --export folded or pprof: stacks of the callers that allocate the data (`allocation`), or of the code that accesses
    /// it (`code`) [default: allocation]
    #[arg(long, value_name = "STACKS", value_parser = one_of([("allocation", StackKind::Allocation), ("code", StackKind::Code)]), hide_possible_values = true, requires = "export")]
    pub stacks: Option<StackKind>,
    /// With --export folded: the number of a stack, its `heat` or its peak resident `bytes` [default: heat]
    #[arg(long, value_name = "WIDTH", value_parser = one_of([("heat", StackWeight::Heat), ("bytes", StackWeight::Bytes)]), hide_possible_values = true, requires = "export")]
    pub width: Option<StackWeight>,
}

impl Exporting {
    /// Refuses flags that belong to other formats.
    ///
    /// # Errors
    /// `--stacks` or `--width` is given, and the format has all stacks or both widths.
    pub(crate) fn check(&self) -> Result<()> {
        let (name, has_all_stacks) = match self.export {
            None | Some(ExportFormat::Folded) => return Ok(()),
            Some(ExportFormat::Speedscope) => ("speedscope", true),
            Some(ExportFormat::Pprof) => ("pprof", false),
        };
        if has_all_stacks && self.stacks.is_some() {
            bail!(
                "--stacks: --export {name} writes all stacks; leave it out, or take --export folded or pprof"
            );
        }
        if self.width.is_some() {
            bail!(
                "--width: --export {name} writes both widths; leave it out, or take --export folded"
            );
        }
        Ok(())
    }
}
