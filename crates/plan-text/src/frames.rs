//! Reads and writes two kinds of lines of a plan: `frame` lines, the callers of each site, by which a guided run finds the sites again in
//! another build, and `code` lines, which number the modules (program and libraries) of these callers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use isotherm_model::plan::Plan;
use isotherm_model::site::{Frame, SiteId};

use super::line::{Line, PlanTextError};
use super::words::quoted;

/// Writes the lines of all frames, sites in the order of their ids: each module once, then a line
/// for each frame.
pub(super) fn write(plan: &Plan) -> Vec<String> {
    let modules: BTreeSet<(&str, Option<&str>)> =
        plan.frames.values().flatten().map(module_of).collect();
    let number: BTreeMap<_, usize> = modules.iter().copied().zip(0..).collect();
    let mut lines: Vec<String> = modules
        .iter()
        .zip(0..)
        .map(|((path, build_id), number): (_, usize)| {
            let build_id = build_id.map_or(String::new(), |id| format!(" build-id {}", quoted(id)));
            format!("code {number} {}{build_id}", quoted(path))
        })
        .collect();
    for (site, frames) in &plan.frames {
        let line = |frame| frame_line(*site, frame, number[&module_of(frame)]);
        lines.extend(frames.iter().map(line));
    }
    lines
}

fn module_of(frame: &Frame) -> (&str, Option<&str>) {
    (&frame.module, frame.build_id.as_deref())
}

fn frame_line(site: SiteId, frame: &Frame, code: usize) -> String {
    let mut text = format!("frame {site} {code} 0x{:x}", frame.offset);
    let numbers = [
        ("line", frame.line),
        ("column", frame.column),
        ("function-line", frame.function_line),
    ];
    let words = [
        ("function", &frame.function),
        ("file", &frame.file),
        ("variable", &frame.variable),
    ];
    // Writing into a String cannot fail.
    for (name, word) in words {
        if let Some(word) = word {
            let _ = write!(text, " {name} {}", quoted(word));
        }
    }
    for (name, number) in numbers {
        if let Some(number) = number {
            let _ = write!(text, " {name} {number}");
        }
    }
    text
}

/// The modules by their numbers.
pub(super) fn modules(
    lines: &[Line],
) -> Result<BTreeMap<u32, (String, Option<String>)>, PlanTextError> {
    let mut modules = BTreeMap::new();
    for line in lines {
        let [_, number, path, ..] = line.words.as_slice() else {
            return line.wrong("a code line is `code NUMBER PATH [build-id ID]`");
        };
        let number: u32 = line.number("code", number)?;
        let mut pairs = line.pairs(3)?;
        let build_id = pairs.given("build-id").map(str::to_owned);
        pairs.done()?;
        if modules.insert(number, (path.clone(), build_id)).is_some() {
            return line.wrong(format!("code {number} is given twice"));
        }
    }
    Ok(modules)
}

/// The frames by their sites, in the order of the lines.
pub(super) fn frames(
    lines: &[Line],
    modules: &BTreeMap<u32, (String, Option<String>)>,
) -> Result<BTreeMap<SiteId, Vec<Frame>>, PlanTextError> {
    let mut frames = BTreeMap::<SiteId, Vec<Frame>>::new();
    for line in lines {
        let [_, site, code, offset, ..] = line.words.as_slice() else {
            return line.wrong("a frame line is `frame SITE CODE OFFSET [function NAME] ...`");
        };
        let site: SiteId = line.quantity("site", site)?;
        let code: u32 = line.number("code", code)?;
        let Some((module, build_id)) = modules.get(&code) else {
            return line.wrong(format!("there is no line `code {code}`"));
        };
        let digits = offset.strip_prefix("0x").unwrap_or_default();
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(offset) = u64::from_str_radix(digits, 16).ok().filter(|_| plain) else {
            return line.wrong(format!(
                "offset \"{offset}\" is not a hexadecimal number such as 0x1234"
            ));
        };
        let mut pairs = line.pairs(4)?;
        let mut word = |name: &str| pairs.given(name).map(str::to_owned);
        let (function, file, variable) = (word("function"), word("file"), word("variable"));
        let mut number = |name: &str| {
            let text = pairs.given(name);
            text.map(|text| line.number(name, text)).transpose()
        };
        let frame = Frame {
            module: module.as_str().into(),
            build_id: build_id.as_deref().map(Into::into),
            offset,
            function,
            file,
            line: number("line")?,
            column: number("column")?,
            function_line: number("function-line")?,
            variable,
        };
        pairs.done()?;
        frames.entry(site).or_default().push(frame);
    }
    Ok(frames)
}
