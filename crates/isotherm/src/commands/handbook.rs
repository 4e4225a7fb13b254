//! `isotherm completions` prints shell completions from the declared flags, and `isotherm man` writes man pages from these flags and
//! `manual.toml`.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::Cli;
use crate::manual::MANUAL;
use crate::output;
use isotherm_console::print;

/// Prints the completion script.
///
/// # Errors
/// Standard output is closed.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "isotherm", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes one page a command.
///
/// # Errors
/// The directory cannot be created or written.
pub(crate) fn man(directory: &Path) -> Result<()> {
    let failed = || format!("{}: man pages cannot be written", directory.display());
    std::fs::create_dir_all(directory).with_context(failed)?;
    let mut whole = Cli::command();
    whole.build();
    for command in whole.get_subcommands() {
        write_page(command, directory)?;
    }
    write_page(&whole, directory)
}

fn write_page(command: &Command, directory: &Path) -> Result<()> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    let page = with_usage(&String::from_utf8_lossy(&page), command);
    let page = with_manual(&page, command);
    output::write(&directory.join(man.get_filename()), page.as_bytes())
}

/// The page with the usage that `--help` shows as its synopsis. The synopsis that clap generates names
/// options without their values and omits the `--` before a program.
fn with_usage(page: &str, command: &Command) -> String {
    let [synopsis, description] = [".SH SYNOPSIS\n", ".SH DESCRIPTION\n"];
    let parts = page
        .split_once(synopsis)
        .and_then(|(before, rest)| Some((before, rest.split_once(description)?.1)));
    let Some((before, after)) = parts else {
        return page.to_owned();
    };
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim_end();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let words = match usage.strip_prefix(name) {
        Some(words) => [bold(name), roman(words)],
        None => [bold(""), roman(usage)],
    };
    let usage = Roff::new().text(words).to_roff();
    format!("{before}{synopsis}{usage}{description}{after}")
}

/// The page with the sections of the manual, before the version if it has one.
fn with_manual(page: &str, command: &Command) -> String {
    // `isotherm` itself is not a subcommand.
    let name = match command.get_name() {
        "isotherm" => "",
        name => name,
    };
    let mut sections = Roff::new();
    for (heading, entries) in MANUAL.sections(name) {
        sections.control("SH", [heading.to_uppercase().as_str()]);
        for (word, meaning) in entries {
            sections.control("TP", []);
            sections.text([bold(word.as_str())]);
            sections.text([roman(meaning.as_str())]);
        }
    }
    let sections = sections.to_roff();
    match page.split_once(".SH VERSION\n") {
        Some((before, version)) => format!("{before}{sections}.SH VERSION\n{version}"),
        None => format!("{page}{sections}"),
    }
}

#[cfg(test)]
mod tests {
    use super::write_page;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_man_page_has_examples_files_and_exit_status() {
        let directory = tempfile::tempdir().unwrap();
        let mut whole = Cli::command();
        whole.build();
        for command in std::iter::once(&whole).chain(whole.get_subcommands()) {
            write_page(command, directory.path()).unwrap();
        }
        let mut pages = 0;
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let page = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for heading in [".SH \"EXIT STATUS\"\n", ".SH FILES\n", ".SH EXAMPLES\n"] {
                assert_eq!(page.matches(heading).count(), 1, "{heading}{page}");
            }
            pages += 1;
        }
        assert_eq!(pages, whole.get_subcommands().count() + 1);
    }
}
