//! `ColouredHeap` runs a Java program by a plan on a heap with colours (`isotherm run --plan PLAN --java`, docs/java-heap.md), and reports
//! how much of the plan the run matched.
//!
//! The virtual machine of `make java-heap` takes the place of `java`. It reads the colours of the plan's Java sites from a guide file in
//! the session directory of the run, and each colour has the memory of its tier. At its end it writes beside that file how many entries
//! matched, so that a plan of another build is noticed.

use std::ffi::OsString;
use std::process::Stdio;

use anyhow::{Context, Result};
use isotherm_act::configuration::Configuration;
use isotherm_act::heap_guide::{self, HeapGuide};
use isotherm_console::{Console, shell_quoting};
use isotherm_model::plan::Plan;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;

use crate::cli_java::JavaHeapChoice;
use crate::coloured_jvm::{ColouredJvm, HeapEnd, HeapRoom, is_trapped, warn_of_page_trap};
use crate::java_guide::{guide_of, in_words};
use crate::launch::{self, EndedProgram};
use crate::session_directory::SessionDirectory;

#[derive(Debug)]
pub(crate) struct ColouredHeap {
    pub(crate) machine: ColouredJvm,
    guide: HeapGuide,
    /// Most bytes of hot regions in the fastest tier.
    hot: Bytes,
    has_page_trap: bool,
}

impl ColouredHeap {
    /// Prepares the program of this command line for a run by this plan.
    ///
    /// # Errors
    /// The plan has no Java sites, or one tier, or more tiers than a heap has colours; and as [`ColouredJvm::new`].
    pub(crate) fn new(plan: &Plan, words: &[OsString], choice: &JavaHeapChoice) -> Result<Self> {
        let tiers = plan.tiers.all();
        let room = HeapRoom {
            tiers,
            hot: hot_bytes(plan),
        };
        let machine = ColouredJvm::new(words, room, choice)?;
        Ok(Self {
            machine,
            guide: guide_of(plan).context("--java")?,
            hot: room.hot,
            has_page_trap: is_trapped(tiers),
        })
    }

    /// Prints how many sites are cold, and how many of these the heap cannot keep apart from hot ones.
    pub(crate) fn say(&self, console: Console) {
        for said in in_words(&self.guide) {
            console.info(&said);
        }
        if self.has_page_trap {
            warn_of_page_trap(console);
        }
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// The guide file cannot be written, and as [`launch::prepare`].
    pub(crate) fn run(&self, configuration: &Configuration) -> Result<EndedProgram> {
        let session = SessionDirectory::new()?;
        let guide = session.write_file("guide", self.guide.text.as_bytes())?;
        let words = self.machine.words(Some(&guide), session.path());
        let ready = launch::prepare(session, &words, configuration, Stdio::inherit())?;
        ready.start()?.finish()
    }

    /// Says how much of the guide file the run has matched and whether the hot objects had room, if the virtual machine wrote it.
    pub(crate) fn say_end(&self, ended: &EndedProgram, plan: &Plan, console: Console) {
        let Some(end) = HeapEnd::of(&ended.session) else {
            return;
        };
        if end.matched == 0 && self.guide.entries > 0 {
            return console.warn(&format!(
                "this plan was made for another program or another version ({}): none of its methods was used; record and plan again",
                shell_quoting::line(&plan.command)
            ));
        }
        console.info(&format!(
            "{} of the guide file's {} were of methods that this run used",
            end.matched,
            counted(self.guide.entries, "entry")
        ));
        if end.borrowed > 0 {
            console.info(&format!(
                "hot objects took more than the {} of the fastest tier that are the heap's: {} went to the slowest",
                self.hot,
                counted(end.borrowed, "region")
            ));
        }
    }

    /// The entries about the heap in the summary of the run.
    pub(crate) fn to_json(&self, ended: &EndedProgram) -> serde_json::Value {
        let end = HeapEnd::of(&ended.session);
        serde_json::json!({
            "java": self.machine.program().display().to_string(),
            "hot_bytes_at_most": self.hot.0,
            "java_sites": self.guide.java_sites,
            "cold_sites": self.guide.cold_sites,
            "cold_sites_in_hotter_places": self.guide.in_hotter_places,
            "cold_sites_without_name": self.guide.unnamed,
            "guide_entries": self.guide.entries,
            "guide_entries_matched": end.map(|end| end.matched),
            "borrowed_regions": end.map(|end| end.borrowed),
        })
    }
}

/// Most bytes of the heap that are hot in the fastest tier: what the plan's other sites leave free there. 1 where they leave nothing,
/// because 0 stands for no limit.
fn hot_bytes(plan: &Plan) -> Bytes {
    let others = heap_guide::without_java_sites(plan).bytes_in(TierIndex::FASTEST);
    let fast = plan.tiers.all()[0].capacity;
    fast.saturating_sub(others).max(Bytes(1))
}

#[cfg(test)]
mod tests {
    use super::hot_bytes;
    use crate::java_guide::tests::plan;
    use isotherm_model::units::Bytes;

    #[test]
    fn the_heap_gets_what_other_sites_leave_of_the_fastest_tier() {
        let mut plan = plan();
        assert_eq!(hot_bytes(&plan), Bytes(48 << 20));
        let sites = plan.assignments.iter_mut();
        sites.for_each(|site| site.weight = Bytes(1 << 30));
        assert_eq!(
            hot_bytes(&plan),
            Bytes(1),
            "nothing is left, and 0 is no limit"
        );
    }
}
