//! `ColouredJvm` rewrites the command line of a Java program for every `isotherm run --java`: it finds a JDK whose heap has colours
//! (docs/java-heap.md), puts its `java` and the flags of the heap in, and refuses a program other than `java` or with another collector.
//! `HeapEnd` reads the report that this virtual machine writes at its end. `is_trapped` is true where the page trap emulates a tier, under
//! which all Java objects are fast.
//!
//! ```text
//! java -Xmx1g -jar app.jar  -->  JDK/bin/java, flags of the heap, files of the run, -Xmx1g -jar app.jar
//! ```

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isotherm_abi::java_heap;
use isotherm_console::{Console, shell_quoting};
use isotherm_model::emulation::Emulation;
use isotherm_model::tier::Tier;
use isotherm_model::units::Bytes;

use crate::cli_java::JavaHeapChoice;
use crate::java;
use crate::java_options;
use crate::session_directory::SessionDirectory;

/// The file that `java/build-jvm` adds to a JDK whose heap has colours.
const MARK: &str = "recipe";
/// What the virtual machine writes into the session directory at its end.
const END_FILE: &str = "heap-at-exit";
/// Flags that choose a collector whose heap has no colours.
const OTHER_COLLECTORS: [&str; 5] = [
    "-XX:+UseSerialGC",
    "-XX:+UseParallelGC",
    "-XX:+UseZGC",
    "-XX:+UseShenandoahGC",
    "-XX:+UseEpsilonGC",
];

/// The requested layout of the heap of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapRoom<'a> {
    /// The tiers, one for each colour.
    pub tiers: &'a [Tier],
    /// Most bytes of hot regions in the fastest tier.
    pub hot: Bytes,
}

/// The command line of a Java program on a heap with colours.
#[derive(Debug)]
pub(crate) struct ColouredJvm {
    /// The `java` that starts it.
    java: PathBuf,
    /// Flags of the heap, apart from the files.
    flags: Vec<String>,
    /// Whether the table of the heap's regions is a file of the session directory.
    shares_table: bool,
    /// The program's own options and arguments.
    arguments: Vec<OsString>,
}

impl ColouredJvm {
    /// The program of these words.
    ///
    /// # Errors
    /// The program is not `java` or chooses another collector, or no JDK whose heap has colours is there.
    pub(crate) fn new(
        words: &[OsString],
        room: HeapRoom<'_>,
        choice: &JavaHeapChoice,
    ) -> Result<Self> {
        let own = std::env::current_exe().unwrap_or_default();
        let beside = own.parent().unwrap_or(Path::new("/"));
        Self::beside(beside, words, room, choice)
    }

    /// As [`Self::new`], where this program is in the folder `beside`.
    fn beside(
        beside: &Path,
        words: &[OsString],
        room: HeapRoom<'_>,
        choice: &JavaHeapChoice,
    ) -> Result<Self> {
        let (name, arguments) = words.split_first().context("no program was named")?;
        if Path::new(name).file_name() != Some(OsStr::new("java")) {
            bail!(
                "--java: another virtual machine takes the place of `java`, and this program is {}; write the command line of `java` that it runs",
                shell_quoting::file(Path::new(name))
            );
        }
        check_collector(arguments)?;
        let home = jdk(choice.java_home.as_deref(), java::home(name), beside)?;
        Ok(Self {
            java: home.join("bin/java"),
            flags: flags(room),
            shares_table: false,
            arguments: arguments.to_vec(),
        })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.java
    }

    /// Adds flags of the heap.
    pub(crate) fn add_flags(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().copied().map(str::to_owned));
    }

    /// The table of its regions is a file of the session directory, which this program can change while the other runs.
    pub(crate) const fn share_table(&mut self) {
        self.shares_table = true;
    }

    /// The command line with this guide file, if there is one, in this session directory: the heap's flags first, so that those of the
    /// program go before them.
    pub(crate) fn words(&self, guide: Option<&Path>, session: &Path) -> Vec<OsString> {
        let with_path = |flag: &str, path: &Path| {
            let mut word = OsString::from(flag);
            word.push(path);
            word
        };
        let end = session.join(END_FILE);
        let mut words = vec![self.java.clone().into_os_string()];
        words.extend(self.flags.iter().map(OsString::from));
        words.extend(guide.map(|guide| with_path("-XX:IsothermHeapGuide=", guide)));
        if self.shares_table {
            let table = session.join(java_heap::FILE_NAME);
            words.push(with_path("-XX:IsothermHeapTable=", &table));
        }
        // A colon would end the path of the log.
        if !end.as_os_str().as_bytes().contains(&b':') {
            words.push(with_path("-Xlog:gc+heap+exit:file=", &end));
        }
        words.extend(self.arguments.iter().cloned());
        words
    }
}

/// True where a tier is emulated by the page trap, under which a Java heap is fast whatever the colours of its objects.
pub(crate) fn is_trapped(tiers: &[Tier]) -> bool {
    let is_page_trap = |tier: &Tier| matches!(tier.emulation(), Some(Emulation::PageTrap(_)));
    tiers.iter().any(is_page_trap)
}

/// Says that no object of such a run is slow.
pub(crate) fn warn_of_page_trap(console: Console) {
    console.warn(
        "under the page trap a Java heap is fast, whatever the colours of its objects; choose --tiers emulated:cxl or memory nodes",
    );
}

/// Refuses a collector whose heap has no colours.
fn check_collector(arguments: &[OsString]) -> Result<()> {
    let mut options = java_options::of_machine(arguments);
    let other = options.find_map(|word| OTHER_COLLECTORS.into_iter().find(|flag| word == flag));
    match other {
        Some(flag) => bail!(
            "--java: only the heap of G1 has colours, and the command line has {flag}; leave it out"
        ),
        None => Ok(()),
    }
}

/// The folder of a JDK whose heap has colours: the one that is named, else that of the program, else that of this installation or clone.
fn jdk(named: Option<&Path>, program: Option<PathBuf>, beside: &Path) -> Result<PathBuf> {
    if let Some(home) = named {
        if !has_colours(home) {
            bail!(
                "--java-home {}: is not the folder of a JDK whose heap has colours; `make java-heap` builds one in build/java/jdk",
                home.display()
            );
        }
        return Ok(home.to_owned());
    }
    let places = ["../lib/isotherm/jdk", "../../build/java/jdk"].map(|place| beside.join(place));
    let mut homes = program.iter().chain(&places);
    homes
        .find(|home| has_colours(home))
        .cloned()
        .with_context(|| {
            format!(
                "--java: there is no JDK whose heap has colours, at neither {} nor {}; `make java-heap` builds it in a clone of Isotherm, and \
                 --java-home names one elsewhere",
                places[0].display(),
                places[1].display()
            )
        })
}

fn has_colours(home: &Path) -> bool {
    let files = ["bin/java", "lib/server/libjvm.so", MARK];
    files.iter().all(|file| home.join(file).is_file())
}

/// The flags of a heap with a colour for each tier.
fn flags(HeapRoom { tiers, hot }: HeapRoom<'_>) -> Vec<String> {
    let mut flags = vec![
        "-XX:+UseG1GC".to_owned(),
        format!("-XX:IsothermHeapColors={}", tiers.len()),
        format!("-XX:IsothermHotHeapSize={}", hot.0),
    ];
    let first_node = |tier: &Tier| tier.nodes().first().map(ToString::to_string);
    // A colour has one node.
    let nodes: Option<Vec<String>> = tiers.iter().map(first_node).collect();
    flags.extend(nodes.map(|nodes| format!("-XX:IsothermHeapNodes={}", nodes.join(","))));
    flags
}

/// What the virtual machine writes of its heap at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HeapEnd {
    /// Entries of the guide file whose method or class the program used.
    pub matched: u64,
    /// Times that a region of hot objects had no room in the fastest tier.
    pub borrowed: u64,
    /// Guide files that it read.
    pub guides_read: u64,
    /// Guide files that it refused.
    pub guides_refused: u64,
    /// What call stack samples showed; `None` where it took none.
    pub stacks: Option<SampledStacks>,
}

/// What the virtual machine found by the call stacks of its threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SampledStacks {
    /// Looks at the stack of a thread that ran.
    pub samples: u64,
    /// Seconds since the start of the virtual machine.
    pub seconds: f64,
    /// Processor time that sampling took, in seconds.
    pub processor_seconds: f64,
    /// Hot classes in the last collection.
    pub hot_classes: u64,
    /// Loaded classes in that collection.
    pub classes: u64,
}

impl SampledStacks {
    /// Reads `stacks: 5 samples in 1.5 s, which took 0.1 s of a processor; 2 of 9 classes hot in the last collection`.
    fn read(text: &str) -> Option<Self> {
        let (_, text) = text.split_once("stacks: ")?;
        let (samples, text) = text.split_once(" samples in ")?;
        let (seconds, text) = text.split_once(" s, which took ")?;
        let (processor_seconds, text) = text.split_once(" s of a processor; ")?;
        let (hot_classes, text) = text.split_once(" of ")?;
        let (classes, _) = text.split_once(" classes hot")?;
        Some(Self {
            samples: samples.parse().ok()?,
            seconds: seconds.parse().ok()?,
            processor_seconds: processor_seconds.parse().ok()?,
            hot_classes: hot_classes.parse().ok()?,
            classes: classes.parse().ok()?,
        })
    }
}

impl HeapEnd {
    pub(crate) fn of(session: &SessionDirectory) -> Option<Self> {
        Self::read(&fs::read_to_string(session.path().join(END_FILE)).ok()?)
    }

    /// Reads `colors: 3 regions borrowed ...; guide: 8 of 9 entries matched`, `guides: 1 read and 0 refused`, and the line of the stacks.
    fn read(text: &str) -> Option<Self> {
        let number_after = |words| -> Option<u64> {
            let (_, rest) = text.split_once(words)?;
            rest.split(' ').next()?.parse().ok()
        };
        Some(Self {
            matched: number_after("guide: ")?,
            borrowed: number_after("colors: ")?,
            guides_read: number_after("guides: ")?,
            guides_refused: number_after(" read and ")?,
            stacks: SampledStacks::read(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ColouredJvm, HeapEnd, HeapRoom, SampledStacks, flags};
    use crate::cli_java::JavaHeapChoice;
    use isotherm_model::emulation::Emulation;
    use isotherm_model::tier::{Tier, TierKind, Tiers};
    use isotherm_model::units::Bytes;
    use std::ffi::OsString;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// The folder of a JDK, with colours or without.
    fn jdk(parent: &Path, name: &str, has_colours: bool) -> PathBuf {
        let home = parent.join(name);
        for folder in ["bin", "lib/server"] {
            fs::create_dir_all(home.join(folder)).expect("makes");
        }
        let shell = fs::canonicalize("/bin/sh").expect("exists");
        fs::copy(shell, home.join("bin/java")).expect("copies");
        fs::write(home.join("lib/server/libjvm.so"), "").expect("writes");
        if has_colours {
            fs::write(home.join("recipe"), "0123\n").expect("writes");
        }
        home
    }

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    /// The heap of a program, where this program is in this folder.
    fn heap(beside: &Path, program: &str, home: Option<PathBuf>) -> Result<ColouredJvm, String> {
        let choice = JavaHeapChoice {
            java: true,
            java_home: home,
            java_stacks: None,
        };
        let tiers = Tiers::emulated(Bytes(64 << 20), Bytes(1 << 30), Emulation::TMP);
        let room = HeapRoom {
            tiers: tiers.all(),
            hot: Bytes(48 << 20),
        };
        ColouredJvm::beside(beside, &words(program), room, &choice)
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn the_command_line_has_the_heap_s_flags_before_the_program_s_own() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = jdk(directory.path(), "jdk", true);
        let heap = heap(
            Path::new("/none"),
            "java -Xmx1g -jar app.jar x",
            Some(home.clone()),
        );
        let mut heap = heap.expect("a heap");
        heap.share_table();
        let words = heap.words(Some(Path::new("/s/guide-x")), Path::new("/s"));
        let words: Vec<_> = words
            .iter()
            .map(|word| word.to_str().expect("text"))
            .collect();
        let java = home.join("bin/java");
        assert_eq!(
            words,
            [
                java.to_str().expect("text"),
                "-XX:+UseG1GC",
                "-XX:IsothermHeapColors=2",
                "-XX:IsothermHotHeapSize=50331648",
                "-XX:IsothermHeapGuide=/s/guide-x",
                "-XX:IsothermHeapTable=/s/heap-table",
                "-Xlog:gc+heap+exit:file=/s/heap-at-exit",
                "-Xmx1g",
                "-jar",
                "app.jar",
                "x",
            ]
        );
    }

    #[test]
    fn a_jdk_is_the_named_one_then_the_program_s_then_that_of_the_clone() {
        let directory = tempfile::tempdir().expect("a directory");
        let clone = directory.path();
        let beside = clone.join("target/release");
        fs::create_dir_all(&beside).expect("makes");
        let plain = jdk(clone, "plain", false);
        let program = plain.join("bin/java").display().to_string();
        let refused = heap(&beside, &program, None).expect_err("there is none");
        assert!(refused.contains("`make java-heap` builds it"), "{refused}");
        let refused = heap(&beside, &program, Some(plain)).expect_err("without colours");
        assert!(refused.contains("--java-home"), "{refused}");
        assert!(refused.contains("`make java-heap` builds one"), "{refused}");

        let of_clone = jdk(clone, "build/java/jdk", true);
        let found = heap(&beside, &program, None).expect("that of the clone");
        let canonical = |path: &Path| path.canonicalize().expect("exists");
        assert_eq!(
            canonical(found.program()),
            canonical(&of_clone.join("bin/java"))
        );
        let own = jdk(clone, "own", true).join("bin/java");
        let found = heap(&beside, &own.display().to_string(), None).expect("the program's");
        assert_eq!(canonical(found.program()), canonical(&own));
    }

    #[test]
    fn another_program_and_other_collectors_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = jdk(directory.path(), "jdk", true);
        let refused =
            |program| heap(Path::new("/none"), program, Some(home.clone())).expect_err("refused");
        assert!(refused("./gradlew run").contains("this program is ./gradlew"));
        let collector = refused("java -XX:+UseSerialGC -jar app.jar");
        assert!(
            collector.contains("-XX:+UseSerialGC; leave it out"),
            "{collector}"
        );
        for argument in ["-jar app.jar", "-cp app.jar app.Main"] {
            let program = format!("java {argument} -XX:+UseSerialGC");
            assert!(heap(Path::new("/none"), &program, Some(home.clone())).is_ok());
        }
    }

    #[test]
    fn colours_have_the_nodes_of_their_tiers() {
        let tier = |name: &str, nodes: &[u32]| {
            Tier::unmeasured(name, TierKind::Nodes(nodes.to_vec()), Bytes(1 << 30), "")
        };
        let tiers = [tier("dram", &[0, 1]), tier("cxl", &[2]), tier("far", &[3])];
        let flags = flags(HeapRoom {
            tiers: &tiers,
            hot: Bytes(4096),
        });
        assert_eq!(flags[1], "-XX:IsothermHeapColors=3");
        assert_eq!(flags[3], "-XX:IsothermHeapNodes=0,2,3");
    }

    #[test]
    fn the_end_of_the_heap_is_read_from_the_log() {
        let line =
            "colors: 3 regions borrowed and 5 moved since the start; guide: 8 of 9 entries matched";
        let guides = "guides: 2 read and 1 refused";
        let text = format!(
            "[1.2s][info][gc,heap,exit] Heap\n[1.2s][info][gc,heap,exit]   {line}\n[1.2s][info][gc,heap,exit]   {guides}\n"
        );
        let expected = HeapEnd {
            matched: 8,
            borrowed: 3,
            guides_read: 2,
            guides_refused: 1,
            stacks: None,
        };
        assert_eq!(HeapEnd::read(&text), Some(expected));
        let stacks = "stacks: 5 samples in 1.500 s, which took 0.250 s of a processor; 2 of 9 classes hot in the last collection";
        let expected = HeapEnd {
            stacks: Some(SampledStacks {
                samples: 5,
                seconds: 1.5,
                processor_seconds: 0.25,
                hot_classes: 2,
                classes: 9,
            }),
            ..expected
        };
        let text = format!("{text}[1.2s][info][gc,heap,exit]   {stacks}\n");
        assert_eq!(HeapEnd::read(&text), Some(expected));
        for text in ["", "colors: 3", "guide: 8 of 9", "colors: x guide: 8 of 9"] {
            assert_eq!(HeapEnd::read(text), None, "{text}");
        }
    }
}
