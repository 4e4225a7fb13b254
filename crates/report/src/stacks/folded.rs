//! Formats stacks as folded stacks, one a line, which `flamegraph.pl`, `inferno-flamegraph` and speedscope read.

use super::{StackFrame, StackWeight, WeightedStack};
use crate::words::clip;

/// `main (main.cc:24);load_graph (graph.cc:88) 1200`, a line for each stack with a weight.
#[must_use]
pub fn folded(stacks: &[WeightedStack], weight: StackWeight) -> String {
    let mut text = String::new();
    for stack in stacks.iter().filter(|stack| stack.weight(weight) > 0) {
        let frames: Vec<String> = stack.frames.iter().map(frame).collect();
        text += &format!("{} {}\n", frames.join(";"), stack.weight(weight));
    }
    text
}

/// The name of a frame, without the characters that separate names and lines.
fn frame(frame: &StackFrame) -> String {
    let file = frame.file.as_deref();
    let file = file.and_then(|file| file.rsplit('/').next());
    let name = match (file, frame.line) {
        (Some(file), Some(line)) => format!("{} ({file}:{line})", frame.name),
        _ => frame.name.clone(),
    };
    clip(&name, usize::MAX).replace(';', ",")
}
