//! `isotherm fit-bandwidth` fits to the printed results of runs of a load, such as `workloads/membench`, how many memory devices hot data
//! needs at a bandwidth (Cross-Layer, section 7.2), and writes the model that `isotherm plan` and `isotherm run --remap` read.
//!
//! A line of the runs has pairs of a name and a number, in any order. Other names are ignored, and so are lines that do not begin with one
//! of these four: a load may print more.
//!
//! ```text
//! devices 1 delay 150 bandwidth 1200000000 work 37500000
//! ```
//!
//! `bandwidth` is in bytes a second, `delay` names the setting of the load, `work` is in any unit, more is better. Of the runs with the
//! same devices and delay the one with most work counts, because it was disturbed least: other work only makes a run slower.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_policy::energy::{BandwidthModel, LoadRun};
use isotherm_sys::files::read_input_text;

use crate::bandwidth_file;
use crate::cli_devices::FitBandwidthArgs;
use isotherm_console::Console;
use isotherm_console::shell_quoting;

/// Largest file of runs: a hundred thousand lines.
const RUNS_AT_MOST: u64 = 16 << 20;

/// The line of a run.
const EXAMPLE: &str = "devices 1 delay 150 bandwidth 1200000000 work 37500000";

/// Fits and writes the model.
///
/// # Errors
/// The runs cannot be read, are malformed or incomplete, or the model cannot be written.
pub(crate) fn run(args: &FitBandwidthArgs, console: Console) -> Result<()> {
    super::keep_inputs([&args.runs], &args.output, "--output")?;
    let shown = match args.runs == Path::new("-") {
        true => "standard input".to_owned(),
        false => args.runs.display().to_string(),
    };
    let text = match args.runs == Path::new("-") {
        true => standard_input()?,
        false => read_input_text(&args.runs, RUNS_AT_MOST).context(shown.clone())?,
    };
    let all = runs(&text).context(shown.clone())?;
    let runs = undisturbed(&all);
    let model = BandwidthModel::fitted(&runs, args.tolerance).context(shown)?;
    let heading = format!(
        "fitted by isotherm fit-bandwidth from {}, tolerance {} %",
        counted(all.len(), "run"),
        args.tolerance
    );
    super::write_text(&args.output, &bandwidth_file::text(&model, &heading)?)?;
    if super::is_standard_output(&args.output) {
        return Ok(());
    }
    for line in in_words(&model) {
        console.info(&line);
    }
    console.next(&format!(
        "isotherm plan app.iso --policy cold-set --bandwidth 1GB/s --bandwidth-model {}",
        shell_quoting::file(&args.output)
    ));
    Ok(())
}

/// The text of standard input, which is limited as a file is.
fn standard_input() -> Result<String> {
    let mut text = String::new();
    let input = std::io::stdin().lock();
    let read = input.take(RUNS_AT_MOST + 1).read_to_string(&mut text);
    if read.context("standard input")? as u64 > RUNS_AT_MOST {
        bail!("standard input: there are more than {RUNS_AT_MOST} bytes, the most that is read");
    }
    Ok(text)
}

/// The names of a run's numbers.
const NAMES: [&str; 4] = ["devices", "delay", "bandwidth", "work"];

/// The runs of a text, line by line.
fn runs(text: &str) -> Result<Vec<LoadRun>> {
    let mut runs = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_some_and(|first| NAMES.contains(first)) {
            runs.push(load_run(&words).with_context(|| format!("line {number}"))?);
        }
    }
    if runs.is_empty() {
        bail!("no line is a run, such as `{EXAMPLE}`");
    }
    Ok(runs)
}

fn load_run(words: &[&str]) -> Result<LoadRun> {
    let mut pairs = BTreeMap::new();
    for pair in words.chunks(2) {
        let [name, value] = pair else {
            bail!("`{}` lacks its number", pair[0]);
        };
        if pairs.insert(*name, *value).is_some() {
            bail!("`{name}` is given twice");
        }
    }
    let number = |name: &str| -> Result<u64> {
        let text = pairs
            .get(name)
            .with_context(|| format!("there is no `{name}`; a line is `{EXAMPLE}`"))?;
        let number = text.parse();
        number.with_context(|| format!("{name} \"{text}\" is no whole number in range"))
    };
    let small =
        |name| u32::try_from(number(name)?).with_context(|| format!("{name} is out of range"));
    Ok(LoadRun {
        devices: small("devices")?,
        load: small("delay")?,
        bandwidth: number("bandwidth")?,
        work: number("work")?,
    })
}

/// One run for each number of devices and load: that with most work, and of equal ones that with most bandwidth.
fn undisturbed(runs: &[LoadRun]) -> Vec<LoadRun> {
    let mut of_setting = BTreeMap::<(u32, u32), LoadRun>::new();
    for run in runs {
        let best = of_setting.entry((run.devices, run.load)).or_insert(*run);
        if (run.work, run.bandwidth) > (best.work, best.bandwidth) {
            *best = *run;
        }
    }
    of_setting.into_values().collect()
}

/// A line for each number of devices, as table 2 of the paper.
fn in_words(model: &BandwidthModel) -> Vec<String> {
    let rate = |bound: u64| match bound {
        u64::MAX => "any bandwidth".to_owned(),
        bound => format!("{}/s", Bytes(bound)),
    };
    let bounds = model.bounds().iter().zip(1_u32..);
    let mut lines: Vec<String> = bounds
        .map(|(bound, devices)| format!("{}: below {}", counted(devices, "device"), rate(*bound)))
        .collect();
    lines.push(format!("{}: above it", counted(model.most(), "device")));
    lines
}

#[cfg(test)]
mod tests {
    use super::{runs, undisturbed};

    #[test]
    fn a_line_is_a_run_and_of_repeated_ones_the_one_with_most_work_counts() {
        let text = "# membench\nkernel_seconds 2.5\ndevices 1 threads 2 delay 0 bandwidth 50 work 5\n\n\
                    devices 1 delay 0 bandwidth 70 work 9 # late\ndevices 1 delay 0 bandwidth 60 work 7\n";
        let all = runs(text).unwrap();
        assert_eq!(all.len(), 3);
        let [run] = undisturbed(&all)[..] else {
            panic!("one setting");
        };
        assert_eq!(
            (run.devices, run.load, run.bandwidth, run.work),
            (1, 0, 70, 9)
        );
    }

    #[test]
    fn a_malformed_line_is_named_with_what_is_wrong() {
        for (text, part) in [
            (
                "devices 1 delay 0 bandwidth 5",
                "line 1: there is no `work`",
            ),
            (
                "\ndevices 1 delay 0 bandwidth 5 work",
                "line 2: `work` lacks its number",
            ),
            ("devices 1 devices 2", "line 1: `devices` is given twice"),
            ("membench: objects 5\n", "no line is a run"),
            (
                "devices one delay 0 bandwidth 5 work 5",
                "line 1: devices \"one\" is no whole number",
            ),
            (
                "devices 4294967296 delay 0 bandwidth 5 work 5",
                "line 1: devices is out of range",
            ),
        ] {
            let error = format!("{:#}", runs(text).unwrap_err());
            assert!(error.starts_with(part), "{text}: {error}");
        }
    }
}
