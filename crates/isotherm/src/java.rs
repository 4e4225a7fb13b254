//! Recognizes Java programs, adds the agent, which samples the objects that they allocate or counts each object and access, to the command
//! line of their virtual machine, and tells `isotherm doctor` whether a JDK and the agent are there.
//!
//! A Java program begins with the `java` of a folder that has `lib/server/libjvm.so`, as every JDK since 9. The agent is an option of the
//! command line, because the virtual machine prints a line about `JAVA_TOOL_OPTIONS`, and a program's output must not change.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use isotherm_abi::java::AGENT;
use isotherm_console::Console;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Bytes;
use isotherm_observe::doctor::{FeatureState, available, missing};

use crate::cli::Observing;
use crate::program;

/// What the agent samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AgentSettings {
    /// Bytes that are allocated from one sampled object to the next.
    pub interval: Bytes,
    /// Callers in a calling context.
    pub depth: u32,
    /// Whether it counts each object and each access to a field, in the interpreter.
    pub counts_all: bool,
}

impl AgentSettings {
    /// The settings for a run with these flags.
    pub(crate) fn of(observing: &Observing, interval: Bytes) -> Self {
        Self {
            // The interface of the virtual machine takes 31 bits.
            interval: interval.min(Bytes(i32::MAX as u64)),
            depth: observing.depth,
            counts_all: observing.source.contains(&SourceKind::JavaCounts),
        }
    }
}

/// True where the program is a Java virtual machine.
pub(crate) fn is_java(words: &[OsString]) -> bool {
    words.first().and_then(|name| home(name)).is_some()
}

/// The folder of the JDK of a program, if that is the `java` of one.
pub(crate) fn home(name: &OsStr) -> Option<PathBuf> {
    let path = program::check(name).ok()?.canonicalize().ok()?;
    let home = path.parent()?.parent()?;
    let is_java = path.file_name() == Some(OsStr::new("java"));
    (is_java && home.join("lib/server/libjvm.so").is_file()).then(|| home.to_owned())
}

/// What `isotherm doctor` says of Java programs.
pub(crate) fn support() -> FeatureState {
    let Some(home) = home(OsStr::new("java")) else {
        return missing(
            "no java of a JDK is on the PATH",
            "install openjdk-17-jdk-headless if you have Java programs",
        );
    };
    let version = version(&home);
    match agent() {
        Ok(_) => available(format!("sites of JDK {version} at {}", home.display())),
        Err(places) => missing(
            format!("JDK {version} is there, and {AGENT} at neither of {places}"),
            "`make java` builds it where a JDK is installed",
        ),
    }
}

/// The version of a JDK, which its file `release` has.
fn version(home: &Path) -> String {
    let release = std::fs::read_to_string(home.join("release")).unwrap_or_default();
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="));
    line.map_or("of unknown version", |version| version.trim_matches('"'))
        .chars()
        .filter(|it| !it.is_control())
        .take(40)
        .collect()
}

/// The command line of a Java program with the agent. Without the agent's file it is as it was, and a warning says why.
pub(crate) fn with_agent(
    words: &[OsString],
    settings: AgentSettings,
    console: Console,
) -> Vec<OsString> {
    match agent() {
        Ok(agent) => with_agent_of(&agent, words, settings),
        Err(places) => {
            console.warn(&format!(
                "{AGENT} is at neither of {places}, so the sites are those of the virtual machine itself and not of the Java \
                 program; `make java` builds it where a JDK is installed"
            ));
            words.to_vec()
        }
    }
}

/// The command line with the agent, without which the run would have no sense.
///
/// # Errors
/// The agent's file is not there.
pub(crate) fn with_needed_agent(
    words: &[OsString],
    settings: AgentSettings,
) -> Result<Vec<OsString>> {
    let agent = agent().map_err(|places| {
        anyhow!("{AGENT} is at neither of {places}, so no Java object is seen; `make java` builds it where a JDK is installed")
    })?;
    Ok(with_agent_of(&agent, words, settings))
}

fn with_agent_of(agent: &Path, words: &[OsString], settings: AgentSettings) -> Vec<OsString> {
    let mut option = OsString::from("-agentpath:");
    option.push(agent);
    option.push(options(settings));
    // With thread-local allocation buffers the virtual machine would not report each object.
    let all = match settings.counts_all {
        true => &["-Xint", "-XX:-UseTLAB"][..],
        false => &[],
    };
    let (name, arguments) = words.split_at(1.min(words.len()));
    name.iter()
        .cloned()
        .chain([option])
        .chain(all.iter().map(OsString::from))
        .chain(arguments.iter().cloned())
        .collect()
}

fn options(settings: AgentSettings) -> String {
    let exact = if settings.counts_all { ",exact" } else { "" };
    let AgentSettings {
        interval, depth, ..
    } = settings;
    format!("=interval={},depth={depth}{exact}", interval.0)
}

/// Finds the agent as the runtime is found: beside this program, or in `../lib` of it. The error is the places, if it is at none. A place
/// with `=` in its path is left out: after the first `=` of the option the virtual machine reads the agent's own options.
fn agent() -> Result<PathBuf, String> {
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [beside.join(AGENT), beside.join("../lib").join(AGENT)];
    let has_no_sign = |path: &&PathBuf| !path.as_os_str().as_encoded_bytes().contains(&b'=');
    let found = places.iter().filter(has_no_sign).find(|it| it.is_file());
    found.cloned().ok_or_else(|| {
        let shown = places.map(|place| place.display().to_string());
        shown.join(" and ")
    })
}

#[cfg(test)]
mod tests {
    use super::{AgentSettings, is_java, options, version};
    use isotherm_model::units::Bytes;
    use std::ffi::OsString;

    #[test]
    fn only_a_file_called_java_beside_its_machine_is_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path();
        for folder in ["bin", "lib/server"] {
            std::fs::create_dir_all(home.join(folder)).expect("makes");
        }
        let shell = std::fs::canonicalize("/bin/sh").expect("exists");
        for name in ["bin/java", "bin/javac"] {
            std::fs::copy(&shell, home.join(name)).expect("copies");
        }
        let words = |name: &str| [OsString::from(home.join(name))];
        assert!(!is_java(&words("bin/java")), "it has no libjvm.so");
        std::fs::write(home.join("lib/server/libjvm.so"), "").expect("writes");
        assert!(is_java(&words("bin/java")));
        assert!(!is_java(&words("bin/javac")));
        assert!(!is_java(&words("bin/nothing")));
        std::os::unix::fs::symlink("bin/java", home.join("runs")).expect("links");
        assert!(
            is_java(&words("runs")),
            "through a link, as /usr/bin/java is"
        );
        assert!(!is_java(&[]));
    }

    #[test]
    fn a_version_is_that_of_the_file_release() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(version(directory.path()), "of unknown version");
        let text = "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n";
        std::fs::write(directory.path().join("release"), text).expect("writes");
        assert_eq!(version(directory.path()), "17.0.15");
    }

    #[test]
    fn the_agent_is_told_the_settings() {
        let settings = AgentSettings {
            interval: Bytes(4096),
            depth: 3,
            counts_all: false,
        };
        assert_eq!(options(settings), "=interval=4096,depth=3");
        let exact = AgentSettings {
            counts_all: true,
            ..settings
        };
        assert_eq!(options(exact), "=interval=4096,depth=3,exact");
    }
}
