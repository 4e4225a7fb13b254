//! `ClassHeap` is the heap of a Java program whose classes become hot or cold while it runs (their colours; `isotherm run --java` without a
//! plan): its tiers, its part of the fast tier, the command line of its virtual machine, and its entries in the summary.
//!
//! Three quarters of the fast tier are the heap's. Other memory of the virtual machine has the rest in the order of first touch.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Result, bail};
use isotherm_console::Console;
use isotherm_model::tier::Tiers;
use isotherm_model::units::Bytes;
use serde_json::{Value, json};

use crate::cli::{Observing, RunArgs};
use crate::coloured_jvm::{ColouredJvm, HeapRoom, is_trapped, warn_of_page_trap};
use crate::java::{self, AgentSettings};
use crate::session_directory::SessionDirectory;
use crate::tiers_choice::{self, ShareBase};

/// Bytes that are allocated from one sampled object to the next, as `isotherm record` has it.
const ALLOCATION_INTERVAL: Bytes = Bytes(512 << 10);
/// Every mixed collection may evacuate each old region: a class that changes its colour has objects in full ones, too.
const EVACUATE_ALL: [&str; 3] = [
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:G1MixedGCLiveThresholdPercent=100",
    "-XX:G1HeapWastePercent=0",
];

pub(super) struct ClassHeap {
    pub tiers: Tiers,
    /// Most bytes of hot regions in the fastest tier.
    pub hot: Bytes,
    pub machine: ColouredJvm,
}

impl ClassHeap {
    /// Chooses the heap of a run by its flags.
    ///
    /// # Errors
    /// The tiers are not those of a heap, and as [`ColouredJvm::new`].
    pub(super) fn new(args: &RunArgs, console: Console) -> Result<Self> {
        if tiers_choice::is_paged(&args.tiers) {
            bail!("--java: the colours of a heap are tiers, and --tiers compressed has none");
        }
        let tiers = tiers_choice::for_run(&args.tiers, ShareBase::Machine, console)?;
        let hot = hot_heap(&tiers);
        let room = HeapRoom {
            tiers: tiers.all(),
            hot,
        };
        let mut machine = ColouredJvm::new(&args.program.words, room, &args.java)?;
        machine.add_flags(&EVACUATE_ALL);
        if is_trapped(tiers.all()) {
            warn_of_page_trap(console);
        }
        Ok(Self {
            tiers,
            hot,
            machine,
        })
    }

    /// The command line of the program with the agent, with this guide file if there is one.
    ///
    /// # Errors
    /// The agent's file is not there.
    pub(super) fn words_with_agent(
        &self,
        guide: Option<&Path>,
        session: &SessionDirectory,
        observing: &Observing,
    ) -> Result<Vec<OsString>> {
        let settings = AgentSettings::of(observing, ALLOCATION_INTERVAL);
        java::with_needed_agent(&self.machine.words(guide, session.path()), settings)
    }

    /// The tiers with what the heap leaves of the fastest.
    pub(super) fn others(&self) -> Tiers {
        outside_of_heap(&self.tiers, self.hot)
    }

    /// The entries of the summary about the heap: those given by the run, its virtual machine and its part of the fast tier.
    pub(super) fn figures(&self, mut java_heap: Value) -> Value {
        java_heap["java"] = json!(self.machine.program().display().to_string());
        java_heap["hot_bytes_at_most"] = json!(self.hot.0);
        json!({ "java_heap": java_heap })
    }
}

/// Most bytes of hot regions in the fastest tier.
fn hot_heap(tiers: &Tiers) -> Bytes {
    let fast = tiers.all()[0].capacity;
    Bytes((fast.0 / 4 * 3).max(1))
}

fn outside_of_heap(tiers: &Tiers, hot: Bytes) -> Tiers {
    let left = tiers.all()[0].capacity.saturating_sub(hot);
    tiers.with_fast_capacity(left)
}

#[cfg(test)]
mod tests {
    use super::{hot_heap, outside_of_heap};
    use isotherm_model::emulation::Emulation;
    use isotherm_model::tier::Tiers;
    use isotherm_model::units::Bytes;

    #[test]
    fn three_quarters_of_the_fast_tier_are_the_heap_s() {
        let tiers = |fast| Tiers::emulated(Bytes(fast), Bytes(1 << 30), Emulation::TMP);
        let all = tiers(64 << 20);
        let hot = hot_heap(&all);
        assert_eq!(hot, Bytes(48 << 20));
        let others = outside_of_heap(&all, hot);
        assert_eq!(others.all()[0].capacity, Bytes(16 << 20));
        assert_eq!(others.all()[1], all.all()[1]);
        assert_eq!(hot_heap(&tiers(0)), Bytes(1), "0 is no limit");
    }
}
