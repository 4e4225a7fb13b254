//! `isotherm run --plan PLAN --java`: a Java program on a heap with colours (docs/java-heap.md).
//!
//! The virtual machine of `make java-heap` takes the place of `java`. It reads the colours of the plan's Java sites from a guide file in the
//! session directory of the run, which goes with that directory, and each colour has the memory of its tier. At its end it writes beside
//! that file how many entries matched, so that a plan of another build is noticed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isotherm_act::configuration::Configuration;
use isotherm_act::heap_guide::{self, HeapGuide};
use isotherm_console::{Console, shell_quoting};
use isotherm_model::emulation::Emulation;
use isotherm_model::plan::Plan;
use isotherm_model::tier::{Tier, TierIndex, TierKind};
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;

use crate::cli_java::JavaHeapChoice;
use crate::java;
use crate::java_guide::{guide_of, in_words};
use crate::launch::{self, EndedProgram, Output};
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

/// A Java program that is to run on a heap with colours.
#[derive(Debug)]
pub(crate) struct ColouredHeap {
    /// The `java` that starts it.
    java: PathBuf,
    /// Flags of the heap, apart from the files.
    flags: Vec<String>,
    /// The program's own options and arguments.
    arguments: Vec<OsString>,
    guide: HeapGuide,
    /// Most bytes of hot regions in the fastest tier.
    hot: Bytes,
    has_page_trap: bool,
}

impl ColouredHeap {
    /// The program of these words, by this plan.
    ///
    /// # Errors
    /// The program is not `java` or chooses another collector, the plan has no Java sites or more tiers than a heap has colours, or no JDK
    /// whose heap has colours is there.
    pub(crate) fn new(plan: &Plan, words: &[OsString], choice: &JavaHeapChoice) -> Result<Self> {
        let own = std::env::current_exe().unwrap_or_default();
        let beside = own.parent().unwrap_or(Path::new("/"));
        Self::beside(beside, plan, words, choice)
    }

    /// As [`Self::new`], where this program is in the folder `beside`.
    fn beside(
        beside: &Path,
        plan: &Plan,
        words: &[OsString],
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
        let guide = guide_of(plan).context("--java")?;
        let home = jdk(choice.java_home.as_deref(), java::home(name), beside)?;
        let hot = hot_bytes(plan);
        Ok(Self {
            java: home.join("bin/java"),
            flags: flags(plan.tiers.all(), hot),
            arguments: arguments.to_vec(),
            guide,
            hot,
            has_page_trap: plan.tiers.all().iter().any(is_page_trap),
        })
    }

    /// The file of the program.
    pub(crate) fn program(&self) -> &Path {
        &self.java
    }

    /// Says which objects are cold, and which the heap cannot part.
    pub(crate) fn say(&self, console: Console) {
        for said in in_words(&self.guide) {
            console.info(&said);
        }
        if self.has_page_trap {
            console.warn(
                "under the page trap a Java heap is fast, whatever the colours of its objects; plan for --tiers emulated:cxl or memory nodes",
            );
        }
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// The guide file cannot be written, and as [`launch::run`].
    pub(crate) fn run(&self, configuration: &Configuration) -> Result<EndedProgram> {
        let session = SessionDirectory::new()?;
        let guide = session.write_file("guide", self.guide.text.as_bytes())?;
        let words = self.words(&guide, &session.path().join(END_FILE));
        launch::run_in(session, &words, configuration, Output::Ours)
    }

    /// The command line with these files: the heap's flags first, so that those of the program go before them.
    fn words(&self, guide: &Path, end: &Path) -> Vec<OsString> {
        let with_path = |flag: &str, path: &Path| {
            let mut word = OsString::from(flag);
            word.push(path);
            word
        };
        let mut words = vec![self.java.clone().into_os_string()];
        words.extend(self.flags.iter().map(OsString::from));
        words.push(with_path("-XX:IsothermHeapGuide=", guide));
        // A colon would end the path of the log.
        if !end.as_os_str().as_bytes().contains(&b':') {
            words.push(with_path("-Xlog:gc+heap+exit:file=", end));
        }
        words.extend(self.arguments.iter().cloned());
        words
    }

    /// Says how much of the guide file the run has matched and whether the hot objects had room, if the virtual machine wrote it.
    pub(crate) fn say_end(&self, ended: &EndedProgram, plan: &Plan, console: Console) {
        let Some(end) = HeapEnd::of(&ended.session) else {
            return;
        };
        if end.matched == 0 && self.guide.entries > 0 {
            return console.warn(&format!(
                "this plan was made for another program or another version ({}): none of its methods was used; record and plan again",
                shell_quoting::line(&plan.command)
            ));
        }
        console.info(&format!(
            "{} of the guide file's {} were of methods that this run used",
            end.matched,
            counted(self.guide.entries, "entry")
        ));
        if end.borrowed > 0 {
            console.info(&format!(
                "hot objects took more than the {} of the fastest tier that are the heap's: {} went to the slowest",
                self.hot,
                counted(end.borrowed, "region")
            ));
        }
    }

    /// What the summary of the run has of the heap.
    pub(crate) fn to_json(&self, ended: &EndedProgram) -> serde_json::Value {
        let end = HeapEnd::of(&ended.session);
        serde_json::json!({
            "java": self.java.display().to_string(),
            "hot_bytes_at_most": self.hot.0,
            "java_sites": self.guide.java_sites,
            "cold_sites": self.guide.cold_sites,
            "cold_sites_in_hotter_places": self.guide.in_hotter_places,
            "cold_sites_without_name": self.guide.unnamed,
            "guide_entries": self.guide.entries,
            "guide_entries_matched": end.map(|end| end.matched),
            "borrowed_regions": end.map(|end| end.borrowed),
        })
    }
}

/// Refuses a collector whose heap has no colours. Options end where the program's archive is named.
fn check_collector(arguments: &[OsString]) -> Result<()> {
    let mut options = arguments.iter().take_while(|word| *word != "-jar");
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

/// Most bytes of the heap that are hot in the fastest tier: what the plan leaves there to Java objects. 1 where that is nothing, because
/// 0 stands for no limit.
fn hot_bytes(plan: &Plan) -> Bytes {
    let others = heap_guide::without_java_sites(plan).bytes_in(TierIndex::FASTEST);
    let fast = plan
        .tiers
        .all()
        .first()
        .map_or(Bytes::ZERO, |tier| tier.capacity);
    fast.saturating_sub(others).max(Bytes(1))
}

/// The flags of a heap with a colour for each tier.
fn flags(tiers: &[Tier], hot: Bytes) -> Vec<String> {
    let mut flags = vec![
        "-XX:+UseG1GC".to_owned(),
        format!("-XX:IsothermHeapColors={}", tiers.len()),
        format!("-XX:IsothermHotHeapSize={}", hot.0),
    ];
    let first_node = |tier: &Tier| match &tier.kind {
        TierKind::Nodes(nodes) => nodes.first().map(ToString::to_string),
        TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => None,
    };
    // A colour has one node.
    let nodes: Option<Vec<String>> = tiers.iter().map(first_node).collect();
    flags.extend(nodes.map(|nodes| format!("-XX:IsothermHeapNodes={}", nodes.join(","))));
    flags
}

fn is_page_trap(tier: &Tier) -> bool {
    matches!(tier.kind, TierKind::EmulatedSlow(Emulation::PageTrap(_)))
}

/// What the virtual machine writes of its heap at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeapEnd {
    /// Entries of the guide file of which it used the method.
    matched: u64,
    /// Times that a region of hot objects had no room in the fastest tier.
    borrowed: u64,
}

impl HeapEnd {
    fn of(session: &SessionDirectory) -> Option<Self> {
        Self::read(&fs::read_to_string(session.path().join(END_FILE)).ok()?)
    }

    /// Reads `colors: 3 regions borrowed ...; guide: 8 of 9 entries matched`.
    fn read(text: &str) -> Option<Self> {
        let number_after = |words| -> Option<u64> {
            let (_, rest) = text.split_once(words)?;
            rest.split(' ').next()?.parse().ok()
        };
        Some(Self {
            matched: number_after("guide: ")?,
            borrowed: number_after("colors: ")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ColouredHeap, HeapEnd, flags, hot_bytes};
    use crate::cli_java::JavaHeapChoice;
    use crate::java_guide::tests::plan;
    use isotherm_model::tier::{Tier, TierKind};
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
    fn heap(beside: &Path, program: &str, home: Option<PathBuf>) -> Result<ColouredHeap, String> {
        let choice = JavaHeapChoice {
            java: true,
            java_home: home,
        };
        ColouredHeap::beside(beside, &plan(), &words(program), &choice)
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
        let words = heap
            .expect("a heap")
            .words(Path::new("/s/guide-x"), Path::new("/s/end"));
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
                "-Xlog:gc+heap+exit:file=/s/end",
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
        let argument = "java -jar app.jar -XX:+UseSerialGC";
        assert!(heap(Path::new("/none"), argument, Some(home.clone())).is_ok());
    }

    #[test]
    fn the_heap_gets_what_other_sites_leave_of_the_fastest_tier() {
        let mut plan = plan();
        assert_eq!(hot_bytes(&plan), Bytes(48 << 20));
        let sites = plan.assignments.iter_mut();
        sites.for_each(|site| site.weight = Bytes(1 << 30));
        assert_eq!(
            hot_bytes(&plan),
            Bytes(1),
            "nothing is left, and 0 is no limit"
        );
    }

    #[test]
    fn colours_have_the_nodes_of_their_tiers() {
        let tier = |name: &str, nodes: &[u32]| {
            Tier::unmeasured(name, TierKind::Nodes(nodes.to_vec()), Bytes(1 << 30), "")
        };
        let tiers = [tier("dram", &[0, 1]), tier("cxl", &[2]), tier("far", &[3])];
        let flags = flags(&tiers, Bytes(4096));
        assert_eq!(flags[1], "-XX:IsothermHeapColors=3");
        assert_eq!(flags[3], "-XX:IsothermHeapNodes=0,2,3");
    }

    #[test]
    fn the_end_of_the_heap_is_read_from_the_log() {
        let line =
            "colors: 3 regions borrowed and 5 moved since the start; guide: 8 of 9 entries matched";
        let text =
            format!("[1.2s][info][gc,heap,exit] Heap\n[1.2s][info][gc,heap,exit]   {line}\n");
        let (matched, borrowed) = (8, 3);
        assert_eq!(HeapEnd::read(&text), Some(HeapEnd { matched, borrowed }));
        for text in ["", "colors: 3", "guide: 8 of 9", "colors: x guide: 8 of 9"] {
            assert_eq!(HeapEnd::read(text), None, "{text}");
        }
    }
}
