//! Runs one program, or a shell, in a guest.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isotherm_vm::archive::Archive;
use isotherm_vm::guest::{self, Guest};
use isotherm_vm::kit::Kit;
use isotherm_vm::payload::PROGRAMS;
use isotherm_vm::topology;

const USAGE: &str = "\
usage: isotherm-vm list                                        the topologies
       isotherm-vm shell [--with FILE]... TOPOLOGY             a shell in a guest, on this terminal
       isotherm-vm run [--with FILE]... TOPOLOGY PROGRAM [ARGUMENT]...

TOPOLOGY is a name that `list` shows, or a file. --with adds a program or library of this machine,
with the libraries that it needs. ISOTHERM_VM_KIT chooses emulator and kernel: newest or stock.
`run` ends with the program's exit status, so it can be cargo's runner:

    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=\"$PWD/target/release/isotherm-vm run two-nodes\" \\
        cargo test -p PACKAGE
";

/// Time limit of a program, which may be a test binary with many tests.
const PROGRAM_AT_MOST: Duration = Duration::from_secs(600);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match obey(&words) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let _ = writeln!(io::stderr(), "isotherm-vm: {error:#}");
            // Not a status with which a test in the guest would end.
            ExitCode::from(125)
        }
    }
}

fn obey(words: &[String]) -> Result<u8> {
    let Some((command, mut words)) = words.split_first() else {
        io::stdout().write_all(USAGE.as_bytes())?;
        return Ok(2);
    };
    if command == "list" {
        for name in topology::names(&topology::folder())? {
            writeln!(io::stdout(), "{name}")?;
        }
        return Ok(0);
    }
    if command != "shell" && command != "run" {
        bail!("there is no command {command}\n{USAGE}");
    }
    let mut payload = Archive::default();
    while let [option, file, rest @ ..] = words
        && option == "--with"
    {
        add(&mut payload, Path::new(file))?;
        words = rest;
    }
    let (topology, words) = words
        .split_first()
        .with_context(|| format!("a topology is missing\n{USAGE}"))?;
    let topology = find(topology)?;
    let kit = std::env::var("ISOTHERM_VM_KIT").ok();
    let kit = Kit::find(&isotherm_vm::kits(), kit.as_deref())?;
    if command == "shell" {
        guest::shell(&kit, &topology, payload)?;
        return Ok(0);
    }
    let (program, arguments) = words
        .split_first()
        .with_context(|| format!("a program is missing\n{USAGE}"))?;
    let name = add(&mut payload, Path::new(program))?;
    run(&kit, &topology, payload, &name, arguments)
}

/// A topology by its name or its file.
fn find(topology: &str) -> Result<PathBuf> {
    let named = topology::folder().join(format!("{topology}.toml"));
    match (named.exists(), Path::new(topology)) {
        (true, _) => Ok(named),
        (false, path) if path.exists() => Ok(path.to_owned()),
        _ => bail!(
            "there is no topology {topology}; there are {}",
            topology::names(&topology::folder())?.join(", ")
        ),
    }
}

/// Adds a program under its own name, which is returned.
fn add(payload: &mut Archive, path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} is no file", path.display()))?;
    payload.program(path, name)?;
    Ok(name.to_owned())
}

fn run(
    kit: &Kit,
    topology: &Path,
    payload: Archive,
    name: &str,
    arguments: &[String],
) -> Result<u8> {
    let mut guest = Guest::boot(kit, topology, payload)?;
    let program = format!("{PROGRAMS}/{name}");
    let mut words = vec![program.as_str()];
    words.extend(arguments.iter().map(String::as_str));
    let ended = guest.run(&words, PROGRAM_AT_MOST)?;
    // The exit status reports the result even where its text cannot be written.
    let _ = io::stdout().write_all(&ended.output);
    let _ = io::stderr().write_all(&ended.errors);
    Ok(u8::try_from(ended.status).unwrap_or(u8::MAX))
}
