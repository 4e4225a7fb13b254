//! `isotherm run --java --java-stacks` has the virtual machine itself find, by samples of its threads' call stacks, which classes are hot,
//! and keep the objects of all others in slow memory (docs/java-heap.md); this file sets its flags and reports at the end.
//!
//! ```text
//! call stacks --> methods --> classes that they access: hot until they have cooled
//!                             all other classes: cold   --> collections move their objects
//! ```
//!
//! After the online strategy of the Cross-Layer paper, section 7.1.2. The heap has the same part of the fast tier as in `coloured_classes`.

use std::process::ExitStatus;

use anyhow::Result;
use isotherm_act::dry_run::DryRun;
use isotherm_console::Console;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Nanos;
use isotherm_model::words::{grouped, percent};
use serde_json::{Value, json};

use super::class_heap::ClassHeap;
use super::prepared_run::{PreparedRun, conclude};
use crate::cli::{Observing, RunArgs};
use crate::coloured_jvm::{HeapEnd, SampledStacks};
use crate::launch::EndedProgram;

/// Runs the program on a heap whose classes cool in this time.
///
/// # Errors
/// The virtual machine is not there, and as a run without a plan.
pub(super) fn run(args: &RunArgs, cooling: Nanos, console: Console) -> Result<ExitStatus> {
    let mut heap = ClassHeap::new(args, console)?;
    let milliseconds = cooling.0.div_ceil(1_000_000);
    let flag = format!("-XX:IsothermStackCooling={milliseconds}");
    heap.machine.add_flags(&[&flag]);
    let prepared = PreparedRun::instead(
        args,
        &heap.others(),
        |observing, session| match sees_objects(args, observing) {
            true => heap.words_with_agent(None, session, observing),
            false => Ok(heap.machine.words(None, session.path())),
        },
        console,
    )?;
    let run = prepared.begin(DryRun, None, console)?;
    let ended = run.complete(|_, _| ())?;
    let program = &ended.program;
    let end = HeapEnd::of(&program.session);
    say_end(&heap, program, end, console);
    let figures = figures(&heap, end, milliseconds);
    let figures = ("online", heap.tiers.emulates(), figures);
    Ok(conclude(args, ended, figures, console))
}

/// True where the recording should have Java objects: nothing else needs the agent.
fn sees_objects(args: &RunArgs, observing: &Observing) -> bool {
    args.output.is_some() || observing.source.contains(&SourceKind::JavaCounts)
}

fn say_end(heap: &ClassHeap, program: &EndedProgram, end: Option<HeapEnd>, console: Console) {
    let said = match end.and_then(|end| end.stacks) {
        Some(stacks) => program.in_words("online", &heap.tiers, &in_words(&stacks)),
        None => program.summary.took("online", program.took, &heap.tiers),
    };
    console.info(&said);
}

fn in_words(stacks: &SampledStacks) -> String {
    let seconds = stacks.seconds.max(f64::MIN_POSITIVE);
    let sampled = format!(
        "{} samples of call stacks a second, by {} of a processor",
        grouped((stacks.samples as f64 / seconds) as u64),
        percent(stacks.processor_seconds / seconds)
    );
    match stacks.classes {
        0 => format!("no collection, so all objects stayed hot; {sampled}"),
        classes => format!(
            "{} of {classes} classes hot in the last collection; {sampled}",
            stacks.hot_classes
        ),
    }
}

fn figures(heap: &ClassHeap, end: Option<HeapEnd>, milliseconds: u64) -> Value {
    let stacks = end.and_then(|end| end.stacks);
    heap.figures(json!({
        "cooling_ms": milliseconds,
        "stack_samples": stacks.map(|it| it.samples),
        "stack_samples_seconds": stacks.map(|it| it.seconds),
        "stack_samples_processor_seconds": stacks.map(|it| it.processor_seconds),
        "hot_classes": stacks.map(|it| it.hot_classes),
        "loaded_classes": stacks.map(|it| it.classes),
        "borrowed_regions": end.map(|end| end.borrowed),
    }))
}
