//! `samples` parses the text that `perf script` prints, line by line, into [`Sample`]s: process, time, whether it is a write, and the data
//! address, which a sample may lack.
//!
//! ```text
//! comm pid/tid [cpu] seconds.fraction: period event: ADDR [sym] [data_src |OP ...|...] ip sym (dso)
//! ```
//!
//! The fields depend on the recording and on `-F`; the number in brackets, the period, the symbols
//! and all fields after the address may be missing. An instruction pointer must never be mistaken
//! for a data address in a sample without one: both are bare hexadecimal. The first such number
//! after the event is the address if it stands alone, or if another one (the instruction pointer,
//! or the data source) follows.

use std::io::BufRead;

use crate::error::{Error, Fault, shown};
use crate::lines::Lines;
use crate::number;
use crate::sample::Sample;
use crate::text::is_comment;

const LINE: &str =
    "a line such as `app 71/71 [003] 12.345678: event: 7ffff7fe4b70 ...` (perf script prints it)";
/// Shortest second number that is treated as an instruction pointer: shorter ones are weights, and
/// names that look like hexadecimal.
const SHORTEST_POINTER: usize = 5;

/// The sample of a line; `None` for a caller of the sample above, a comment, a record of another kind.
fn parse(line: &str) -> Result<Option<Sample>, Fault> {
    if is_comment(line) {
        return Ok(None);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let stamp = words.iter().enumerate().skip(1);
    let Some((at, time)) = stamp
        .filter_map(|(at, word)| Some((at, number::stamp(word)?)))
        .next()
    else {
        return match words.first().and_then(|word| number::hexadecimal(word)) {
            Some(_) => Ok(None),
            None => Err(Fault::new(format!("{} holds no time", shown(line)), LINE)),
        };
    };
    let time = time?;
    let pid = pid(&words[..at])?;
    let rest = &words[at + 1..];
    let event = rest.iter().take(2).position(|word| word.ends_with(':'));
    let Some(event) = event else {
        let other = rest.iter().any(|word| word.starts_with("PERF_RECORD_"));
        return match other {
            true => Ok(None),
            false => Err(Fault::new("no event follows the time", LINE)),
        };
    };
    if rest[event] == "damon:damon_aggregated:" {
        return Err(Fault::new(
            "the samples are regions of DAMON",
            "single accesses (read this file with --format damon-trace)",
        ));
    }
    let behind = &rest[event + 1..];
    Ok(Some(Sample {
        pid,
        time,
        address: data_address(behind).filter(|address| *address != 0),
        write: is_write(rest[event], line),
    }))
}

/// The number before the time and the processor: `71` or `71/72`, process and thread.
fn pid(before: &[&str]) -> Result<u32, Fault> {
    let mut words = before.iter().rev();
    let word = words.find(|word| !(word.starts_with('[') && word.ends_with(']')));
    let word = word.copied().unwrap_or("");
    let pid = word.split('/').next().unwrap_or("");
    // The idle tasks of a processor have no process: perf prints -1 for an unknown one.
    if pid == "-1" {
        return Ok(0);
    }
    number::decimal(pid)
        .and_then(|pid| u32::try_from(pid).ok())
        .ok_or_else(|| Fault::new(format!("{} is no process id", shown(word)), LINE))
}

fn data_address(behind: &[&str]) -> Option<u64> {
    let (first, rest) = behind.split_first()?;
    let address = number::hexadecimal(first)?;
    let Some(next) = rest.first() else {
        return Some(address);
    };
    // A data source is followed by its description: the number before the words is not an address.
    if next.starts_with('|') {
        return None;
    }
    let is_number = |word: &str| {
        word.len() >= SHORTEST_POINTER
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && number::hexadecimal(word).is_some()
    };
    rest.iter().any(|word| is_number(word)).then_some(address)
}

/// The data source states the kind of access; without one the event's name may.
fn is_write(event: &str, line: &str) -> bool {
    let operation = line.split_once("|OP ").map(|(_, rest)| rest);
    let operation = operation.and_then(|rest| rest.split('|').next());
    operation.map_or_else(
        || event.to_ascii_lowercase().contains("store"),
        |operation| operation.contains("STORE"),
    )
}

/// True where the line is a sample of this format.
pub(crate) fn is_sample(line: &str) -> bool {
    matches!(parse(line), Ok(Some(_)))
}

/// The samples of `perf script` output.
pub(crate) fn samples<R: BufRead>(
    source: R,
    file: &str,
) -> impl Iterator<Item = Result<Sample, Error>> + use<R> {
    let mut lines = Lines::new(source, file);
    std::iter::from_fn(move || next_sample(&mut lines).transpose())
}

fn next_sample(lines: &mut Lines<impl BufRead>) -> Result<Option<Sample>, Error> {
    while let Some(line) = lines.next_line()? {
        let parsed = parse(&line);
        if let Some(sample) = lines.checked(parsed)? {
            return Ok(Some(sample));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn address(behind: &str) -> Option<u64> {
        let line = format!("app 7/8 [001] 1.5: 1 cpu/mem-loads/: {behind}");
        match parse(&line) {
            Ok(Some(sample)) => sample.address,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn an_instruction_pointer_alone_is_never_taken_for_a_data_address() {
        assert_eq!(
            address("7f0aaaa0aae0 [unknown] (/usr/lib/libglib.so)"),
            None
        );
        assert_eq!(address("7f0aaaa0aae0 add (/usr/lib/libglib.so)"), None);
        assert_eq!(
            address("268100142 |OP LOAD|LVL L1 hit| 5 7 0 7fad4 f"),
            None
        );
        assert_eq!(address(""), None);
        assert_eq!(address("0 7fad7c47425d main (/bin/app)"), None);
    }

    #[test]
    fn a_data_address_stands_before_symbols_data_source_and_instruction_pointer() {
        assert_eq!(address("7ff0"), Some(0x7ff0));
        assert_eq!(address("7ff0 rfv.9 7ffff7fe5a07 _dl_start"), Some(0x7ff0));
        assert_eq!(
            address("7ff0 10268100142 |OP LOAD|LVL L1 hit|SNP None| 5 7 0 7fad7c47425d f"),
            Some(0x7ff0)
        );
    }

    #[test]
    fn the_data_source_decides_what_is_a_write_and_the_event_without_one() {
        for (text, write) in [
            ("a 1 1.0: cpu/mem-stores/P: 10 7ffff7fe5a07", true),
            ("a 1 1.0: cpu/mem-stores/P: 10 10142 |OP LOAD|LVL", false),
            ("a 1 1.0: ibs_op//: 10 10142 |OP STORE|LVL", true),
            ("a 1 1.0: page-faults:u: 10 7ffff7fe5a07", false),
        ] {
            let Ok(Some(sample)) = parse(text) else {
                panic!("{text} is no sample");
            };
            assert_eq!(sample.write, write, "{text}");
        }
    }

    #[test]
    fn names_of_programs_may_hold_blanks_and_callers_are_passed_over() {
        let line = "Web Content 12/13 [000] 1.5: event: 10";
        let Ok(Some(sample)) = parse(line) else {
            panic!("{line} is no sample");
        };
        assert_eq!(sample.pid, 12);
        for line in ["", "# comment", "\t  7fad7c47425d main (/bin/app)"] {
            assert_eq!(parse(line), Ok(None), "{line}");
        }
        let lost = "a 1 [000] 1.5: PERF_RECORD_LOST lost 5";
        assert_eq!(parse(lost), Ok(None));
    }

    #[test]
    fn lines_of_another_kind_are_refused_with_what_is_missing() {
        for (line, what) in [
            ("hello world", "holds no time"),
            ("app 7 1.5: 3 4 5", "no event"),
            ("app x 1.5: event: 10", "no process id"),
            ("k 1 1.5: damon:damon_aggregated: target_id=1", "DAMON"),
            ("a 1 99999999999999.5: event: 10", "too large"),
        ] {
            let fault = parse(line).unwrap_err();
            assert!(fault.found.contains(what), "{line}: {fault:?}");
        }
    }
}
