//! `isotherm run --java`, with neither a plan nor `--java-stacks`, decides each epoch, by sampled accesses, which Java classes are cold,
//! and writes their names into the guide file: the virtual machine reads it again and moves their objects to slow memory in its
//! collections (docs/java-heap.md). With `--remap`, [`ColouredDevices`] spreads the hot objects over memory devices.
//!
//! ```text
//! agent, samples --> LiveRun --Segment, extents--> classes: accesses, bytes --> ClassColours
//!                                                                                   | cold classes
//! objects move <-- collections of the virtual machine <-- guide file, replaced <----+
//! ```

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;

use anyhow::Result;
use isotherm_act::class_guide;
use isotherm_act::dry_run::DryRun;
use isotherm_console::Console;
use isotherm_model::site::SiteKind;
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Accesses, Bytes};
use isotherm_model::words::counted;
use isotherm_pipeline::{StepReport, class_samples};
use isotherm_policy::{ClassColours, ClassSample};
use serde_json::{Value, json};

use super::class_heap::ClassHeap;
use super::coloured_devices::ColouredDevices;
use super::prepared_run::{PreparedRun, conclude};
use super::remap;
use crate::cli::{Observing, RunArgs};
use crate::coloured_jvm::HeapEnd;
use crate::launch::EndedProgram;
use crate::observed_run::ObservedStep;
use crate::session_directory::SessionDirectory;

/// Cold classes that are named at the end.
const SHOWN_AT_MOST: usize = 3;

/// Runs the program.
///
/// # Errors
/// The agent or the virtual machine is not there, and as a run without a plan.
pub(super) fn run(args: &RunArgs, console: Console) -> Result<ExitStatus> {
    let model = args.remap.as_deref().map(remap::read_model).transpose()?;
    let mut heap = ClassHeap::new(args, console)?;
    let mut classes = ClassRun::new(heap.hot, args.dry_run, console);
    if let Some(model) = model {
        let count = remap::device_count(model, args.device_capacity, &heap.tiers)?;
        classes.devices = Some(ColouredDevices::new(count));
        heap.machine.share_table();
    }
    let words = |observing: &Observing, session: &SessionDirectory| {
        classes.started(&heap, observing, session)
    };
    let prepared = PreparedRun::instead(args, &heap.others(), words, console)?;
    let run = prepared.begin(DryRun, None, console)?;
    let ended = run.complete(|report, step| classes.note(report, step))?;
    classes.say_end(&ended.program, &heap.tiers);
    let figures = classes.figures(&ended.program, &heap);
    let figures = ("online", heap.tiers.emulates(), figures);
    Ok(conclude(args, ended, figures, console))
}

/// The bytes of the objects, epoch after epoch.
#[derive(Debug, Default)]
struct LiveObjects {
    /// Bytes of all objects, in the last epoch.
    all: Bytes,
    /// Bytes of the objects of cold classes, in the last epoch before the program's end.
    cold: Bytes,
}

impl LiveObjects {
    /// Adds an epoch. One that ends with less than half of the bytes of the epoch before is left out, because the virtual machine frees all
    /// objects at its end; if the program goes on, the next epoch counts again.
    fn note(&mut self, all: Bytes, cold: Bytes) {
        if all > Bytes::ZERO && all.0 >= self.all.0 / 2 {
            self.cold = cold;
        }
        self.all = all;
    }
}

/// The classes of a run, and the file that says which are cold.
struct ClassRun {
    colours: ClassColours,
    /// `None` where the run changes nothing.
    guide: Option<PathBuf>,
    /// The devices of hot objects, with --remap.
    devices: Option<ColouredDevices>,
    is_dry: bool,
    /// Guide files that were written after the first.
    guides: usize,
    accesses: Accesses,
    objects: LiveObjects,
    has_agent: bool,
    console: Console,
}

impl ClassRun {
    fn new(hot: Bytes, is_dry: bool, console: Console) -> Self {
        Self {
            colours: ClassColours::new(hot),
            guide: None,
            devices: None,
            is_dry,
            guides: 0,
            accesses: Accesses(0),
            objects: LiveObjects::default(),
            has_agent: false,
            console,
        }
    }

    /// The command line of the program with the agent and a guide file in this directory, in which no class is cold.
    fn started(
        &mut self,
        heap: &ClassHeap,
        observing: &Observing,
        session: &SessionDirectory,
    ) -> Result<Vec<OsString>> {
        let guide = session.write_file("guide", class_guide::text([]).as_bytes())?;
        if !self.is_dry {
            self.guide = Some(guide.clone());
            let devices = self.devices.iter_mut();
            devices.for_each(|devices| devices.started(session.path()));
        }
        heap.words_with_agent(Some(&guide), session, observing)
    }

    fn note<F>(&mut self, report: &StepReport<F>, step: &ObservedStep<DryRun>) {
        let attribution = step.attribution();
        let sites = attribution.sites();
        self.has_agent = self.has_agent || sites.values().any(|site| site.kind == SiteKind::Java);
        let classes = class_samples(sites, &report.segment, attribution.extents());
        self.accesses += classes.iter().map(|class| class.accesses).sum();
        let has_changed = self.colours.decide(classes.iter().cloned());
        let live: Bytes = classes.iter().map(|class| class.live).sum();
        let cold = self.cold_bytes_of(&classes);
        self.objects.note(live, cold);
        if let Some(devices) = &mut self.devices {
            devices.note(&report.batch, live.saturating_sub(cold));
        }
        if has_changed {
            self.write_guide();
        }
    }

    /// The cold classes that a guide file can name, sorted.
    fn cold(&self) -> Vec<&str> {
        let cold = self.colours.cold();
        cold.filter(|class| class_guide::can_name(class)).collect()
    }

    fn cold_bytes_of(&self, classes: &[ClassSample]) -> Bytes {
        let cold = self.cold();
        let is_cold = |class: &&ClassSample| cold.binary_search(&class.class.as_str()).is_ok();
        classes.iter().filter(is_cold).map(|it| it.live).sum()
    }

    fn write_guide(&mut self) {
        let Some(guide) = &self.guide else {
            return;
        };
        match class_guide::replace(guide, &class_guide::text(self.cold())) {
            Ok(()) => self.guides += 1,
            Err(error) => {
                self.console.warn(&format!(
                    "the guide file of the heap cannot be replaced, so no more objects change their colour: {error}"
                ));
                self.guide = None;
            }
        }
    }

    fn say_end(&self, program: &EndedProgram, tiers: &Tiers) {
        if !self.has_agent {
            self.console
                .warn("the agent saw no Java object, so no class has a colour");
        }
        let said = program.in_words("online", tiers, &self.in_words());
        self.console.info(&said);
        if !program.summary.worked() {
            return;
        }
        if let Some(devices) = &self.devices {
            devices.say_end(self.console);
        }
        let end = HeapEnd::of(&program.session);
        if let Some(unread) = end.filter(|end| end.guides_read <= 1 && self.guides > 0) {
            self.console.warn(&format!(
                "the virtual machine read none of the {} in which classes change their colours: it reads one at a collection, and {} refused",
                counted(self.guides, "guide file"),
                counted(unread.guides_refused as usize, "file")
            ));
        }
    }

    fn in_words(&self) -> String {
        let classes = self.classes_in_words();
        match &self.devices {
            Some(devices) => format!("{classes}; {}", devices.in_words()),
            None => classes,
        }
    }

    fn classes_in_words(&self) -> String {
        let names = self.cold();
        if names.is_empty() {
            return "all classes are hot".to_owned();
        }
        let shown = names[..names.len().min(SHOWN_AT_MOST)].join(", ");
        let more = match names.len().saturating_sub(SHOWN_AT_MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "{} cold at the end, with {} of objects: {shown}{more}",
            counted(names.len(), "class"),
            self.objects.cold
        )
    }

    fn figures(&self, program: &EndedProgram, heap: &ClassHeap) -> Value {
        let end = HeapEnd::of(&program.session);
        let java_heap = json!({
            "sampled_accesses": self.accesses.0,
            "cold_classes": self.cold(),
            "cold_bytes": self.objects.cold.0,
            "guides_written": self.guides,
            // The first guide file is the one that the program starts with.
            "guides_read": end.map(|end| end.guides_read.saturating_sub(1)),
            "borrowed_regions": end.map(|end| end.borrowed),
        });
        let mut figures = heap.figures(java_heap);
        figures["remap"] = json!(self.devices.as_ref().map(ColouredDevices::to_json));
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::LiveObjects;
    use isotherm_model::units::Bytes;

    #[test]
    fn the_cold_bytes_at_the_end_are_those_before_all_objects_are_freed() {
        let mut objects = LiveObjects::default();
        let mut cold_after = |all, cold| {
            objects.note(Bytes(all), Bytes(cold));
            objects.cold.0
        };
        assert_eq!(cold_after(100, 40), 40);
        assert_eq!(cold_after(60, 30), 30);
        assert_eq!(cold_after(20, 0), 30, "perhaps the end");
        assert_eq!(cold_after(20, 5), 5, "it was not");
        assert_eq!(cold_after(2, 1), 5);
        assert_eq!(cold_after(0, 0), 5);
    }
}
