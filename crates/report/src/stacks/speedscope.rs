//! Formats groups of stacks, such as those of allocations by bytes, as one JSON file for the viewer speedscope, whose menu offers each
//! group by its title.
//!
//! The schema is `https://www.speedscope.app/file-format-schema.json`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{StackFrame, StackWeight, WeightedStack};

/// A file of these groups, each with its title, its unit (`none` or `bytes`) and its width.
#[must_use]
pub fn speedscope(
    name: &str,
    groups: &[(String, &'static str, StackWeight, &[WeightedStack])],
) -> String {
    let mut numbers = BTreeMap::<&StackFrame, usize>::new();
    let mut frames: Vec<Value> = Vec::new();
    let mut profiles: Vec<Value> = Vec::new();
    for (title, unit, weight, stacks) in groups {
        let (mut samples, mut weights, mut end) = (Vec::new(), Vec::new(), 0_u64);
        for stack in stacks.iter().filter(|stack| stack.weight(*weight) > 0) {
            let number = |frame| {
                *numbers.entry(frame).or_insert_with(|| {
                    frames.push(shared(frame));
                    frames.len() - 1
                })
            };
            samples.push(stack.frames.iter().map(number).collect::<Vec<usize>>());
            weights.push(stack.weight(*weight));
            end = end.saturating_add(stack.weight(*weight));
        }
        profiles.push(json!({
            "type": "sampled",
            "name": title,
            "unit": unit,
            "startValue": 0,
            "endValue": end,
            "samples": samples,
            "weights": weights,
        }));
    }
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "isotherm",
        "name": name,
        "activeProfileIndex": 0,
        "shared": { "frames": frames },
        "profiles": profiles,
    });
    file.to_string() + "\n"
}

fn shared(frame: &StackFrame) -> Value {
    let mut value = json!({ "name": frame.name });
    if let Some(file) = &frame.file {
        value["file"] = file.as_str().into();
    }
    if let Some(line) = frame.line {
        value["line"] = line.into();
    }
    value
}
