//! `MANUAL` has each command's exit statuses, files and examples for man pages, from `manual.toml`; `documented` adds them to the help.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clap::Command;
use serde::Deserialize;

/// A term and its meaning: an example and its effect, a file and its contents, an exit status and its cause.
type Entry = (String, String);

/// The end of the help and man page of every command.
pub(crate) static MANUAL: LazyLock<Manual> =
    // A test reads the file.
    LazyLock::new(|| toml::from_str(include_str!("manual.toml")).unwrap_or_default());

/// What `manual.toml` has.
#[derive(Default, Deserialize)]
pub(crate) struct Manual {
    /// Files and exit statuses, by the names that the commands use for them.
    terms: BTreeMap<String, Entry>,
    #[serde(rename = "command")]
    commands: Vec<CommandManual>,
}

#[derive(Deserialize)]
struct CommandManual {
    /// Empty for `isotherm` itself.
    name: String,
    examples: Vec<Entry>,
    files: Vec<String>,
    exit_status: Vec<String>,
}

impl Manual {
    /// Headings and entries of a command, in the order of a man page; the name is empty for `isotherm` itself.
    pub(crate) fn sections(&self, name: &str) -> Vec<(&'static str, Vec<&Entry>)> {
        let command = self.commands.iter().find(|command| command.name == name);
        command.map_or_else(Vec::new, |command| {
            let named = |names: &[String]| names.iter().map(|name| &self.terms[name]).collect();
            vec![
                ("Exit status", named(&command.exit_status)),
                ("Files", named(&command.files)),
                ("Examples", command.examples.iter().collect()),
            ]
        })
    }

    /// The sections of a command as text of its long help.
    fn help(&self, name: &str) -> String {
        let section = |(heading, entries): (&str, Vec<&Entry>)| {
            let entry = |(word, meaning): &Entry| format!("  {word}\n          {meaning}\n");
            let entries: String = entries.into_iter().map(entry).collect();
            format!("{heading}:\n{entries}")
        };
        let sections: Vec<String> = self.sections(name).into_iter().map(section).collect();
        sections.join("\n")
    }
}

/// The command with the manual at the end of the long help of each of its commands.
pub(crate) fn documented(command: Command) -> Command {
    let command = command.after_long_help(MANUAL.help(""));
    command.mut_subcommands(|sub| {
        let help = MANUAL.help(sub.get_name());
        sub.after_long_help(help)
    })
}

#[cfg(test)]
mod tests {
    use super::{MANUAL, Manual, documented};
    use crate::cli::Cli;
    use clap::CommandFactory;
    use isotherm_console::shell_quoting::SOCKET;

    #[test]
    fn the_file_is_read_and_names_the_socket() {
        let manual: Manual = toml::from_str(include_str!("manual.toml")).expect("the manual");
        assert_eq!(manual.terms["socket"].0, SOCKET);
    }

    #[test]
    fn every_command_has_examples_files_and_exit_statuses_in_its_help() {
        let mut whole = documented(Cli::command());
        for command in whole.get_subcommands_mut() {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            for heading in ["Examples:\n  isotherm", "Files:\n", "Exit status:\n  0"] {
                assert!(help.contains(heading), "{name}: {help}");
            }
        }
        assert_eq!(whole.get_subcommands().count() + 1, MANUAL.commands.len());
    }

    #[test]
    fn every_example_is_a_command_line_that_is_taken() {
        for manual in &MANUAL.commands {
            for (example, _) in &manual.examples {
                let words = shlex::split(example).expect("words");
                let taken = Cli::command().try_get_matches_from(words);
                assert!(taken.is_ok(), "{example}: {}", taken.unwrap_err());
                assert!(
                    example.starts_with(format!("isotherm {}", manual.name).trim_end()),
                    "{example}"
                );
            }
        }
    }
}
