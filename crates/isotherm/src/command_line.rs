//! `read` parses the command line by clap, and prints clap's message where the words are wrong or request help. Two messages are its own: a
//! tip where the `--` before a program is missing, and the full form of a size that has a short unit (`4G` is read as `4GiB`).

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, Error, FromArgMatches};
use isotherm_model::units::{Bytes, Capacity};

use crate::cli::Cli;
use crate::{input, manual};
use isotherm_console::shell_quoting;

/// Commands that run a program, whose arguments follow `--`.
const RUNNING: [&str; 4] = ["record", "run", "compare", "sensitivity"];

/// Parses the words; if they are wrong or request help, prints the message.
///
/// # Errors
/// The exit status, or the reason why help could not be printed.
pub(crate) fn read(words: &[OsString]) -> Result<(Cli, Vec<String>), anyhow::Result<ExitCode>> {
    parse(words).map_err(|error| match (error.print(), error.use_stderr()) {
        (Err(failed), false) => Err(isotherm_console::output_failed(failed)),
        // A message that cannot be written to standard error is lost; the exit status remains.
        _ => Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))),
    })
}

fn parse(words: &[OsString]) -> Result<(Cli, Vec<String>), Error> {
    let mut command = manual::documented(Cli::command());
    let matches = command
        .try_get_matches_from_mut(words)
        .map_err(|error| with_separator(error, words))?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    Ok((cli, short_sizes(&matches)))
}

/// The tip for `isotherm record ls` is `isotherm record -- ls`.
fn with_separator(mut error: Error, words: &[OsString]) -> Error {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let Some(ContextValue::String(unexpected)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let runs = words.iter().any(|word| RUNNING.contains(&word.as_ref()));
    let at = words.iter().rposition(|word| word == unexpected);
    let (ErrorKind::UnknownArgument, true, Some(at)) = (error.kind(), runs, at) else {
        return error;
    };
    if unexpected.starts_with('-') || words.iter().any(|word| word == "--") {
        return error;
    }
    let (before, program) = words[1..].split_at(at - 1);
    let (before, program) = (shell_quoting::line(before), shell_quoting::line(program));
    let tip = format!("a program and its arguments follow `--`: isotherm {before} -- {program}");
    error.insert(
        ContextKind::Suggested,
        ContextValue::StyledStrs(vec![tip.into()]),
    );
    error
}

/// A sentence with the full form of each given size that has a short unit, each once.
fn short_sizes(matches: &ArgMatches) -> Vec<String> {
    let Some((_, matches)) = matches.subcommand() else {
        return Vec::new();
    };
    let is_size = |id: &str| {
        matches!(matches.try_get_one::<Bytes>(id), Ok(Some(_)))
            || matches!(matches.try_get_one::<Capacity>(id), Ok(Some(_)))
    };
    let flags = matches.ids().filter(|id| is_size(id.as_str()));
    let values = flags
        .filter_map(|id| matches.get_raw(id.as_str()))
        .flatten();
    let mut said: Vec<String> = values
        .filter_map(|value| {
            let text = value.to_string_lossy();
            let read = input::with_whole_unit(&text)?;
            Some(format!("{text} is read as {read}"))
        })
        .collect();
    said.sort();
    said.dedup();
    said
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::cli::Cli;
    use std::ffi::OsString;

    fn parsed(line: &str) -> Result<(Cli, Vec<String>), String> {
        let words: Vec<OsString> = shlex::split(line)
            .expect("words")
            .into_iter()
            .map(OsString::from)
            .collect();
        parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn a_program_without_its_separator_gets_the_line_that_was_meant() {
        for (line, tip) in [
            ("isotherm record ls", "isotherm record -- ls"),
            (
                "isotherm record -o 'a b.iso' ./app -v x",
                "isotherm record -o 'a b.iso' -- ./app -v x",
            ),
            (
                "isotherm run --fast 4GiB ls",
                "isotherm run --fast 4GiB -- ls",
            ),
            (
                "isotherm compare app.plan ./app",
                "isotherm compare app.plan -- ./app",
            ),
        ] {
            let said = parsed(line).unwrap_err();
            assert!(said.contains(tip), "{line}: {said}");
        }
        for line in [
            "isotherm record --force x --frobnicate -- ls",
            "isotherm plan a b",
        ] {
            assert!(!parsed(line).unwrap_err().contains("follow `--`"), "{line}");
        }
    }

    #[test]
    fn short_units_of_sizes_are_taken_and_said_once() {
        let (_, said) = parsed("isotherm record --chunk 64K -- ls").expect("is taken");
        assert_eq!(said, ["64K is read as 64KiB"]);
        let (_, said) = parsed("isotherm plan a.iso --fast 4G").expect("is taken");
        assert_eq!(said, ["4G is read as 4GiB"]);
        let (_, said) =
            parsed("isotherm simulate --generate zipf --footprint 4M --fast 4M").expect("is taken");
        assert_eq!(said, ["4M is read as 4MiB"]);
        let (_, said) = parsed("isotherm plan a.iso --fast 25%").expect("is taken");
        assert!(said.is_empty(), "{said:?}");
        assert!(parsed("isotherm plan a.iso --fast 4").is_err());
    }
}
