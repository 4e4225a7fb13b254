//! Tests programs that use `include/isotherm.h`: without the library, with it in every mode, and with an observer.

use std::fs::File;
use std::io::Write;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use isotherm_abi::config::{
    ConfigHeader, EmulationConfig, RuntimeMode, TierRecord, TierRecordKind,
};
use isotherm_abi::env;
use isotherm_abi::interface::{
    HEADER_VERSION, HintRecord, InterfaceHint, InterfaceRequest, InterfaceResult,
    InterfaceStatistics, OutcomeRecord, OutcomeTable, REASONS,
};
use isotherm_abi::named_data::site_of_name;
use isotherm_abi::session::{MappingRecord, ObjectRecord, SessionHeader, SiteRecord};
use tempfile::TempDir;
use zerocopy::IntoBytes;

/// The library under test, built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("libisotherm.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// The folder of the header.
fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include")
}

/// Builds the program with these options.
fn build(name: &str, options: &[&str]) -> PathBuf {
    build_with(name, options, &include())
}

/// Builds the program with these options and the header of this folder.
fn build_with(name: &str, options: &[&str], include: &Path) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let built = Command::new("cc")
        .args(["-O1", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg("-I")
        .arg(include)
        .args(options)
        .arg("-o")
        .args([&program, &crate_folder.join("tests/programs/interface.c")])
        .output()
        .expect("a C compiler");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    program
}

/// Emulation by page trap.
const TRAPPED: EmulationConfig = EmulationConfig {
    period_ns: 50_000_000,
    access_ns: 10_000,
    hot_ns: 13_000,
    migrate_ns: 50_000,
    latency_percent: 0,
    bandwidth_percent: 0,
    cache_bytes: 0,
    sample_ns: 0,
};

/// Emulation by time.
const TIMED: EmulationConfig = EmulationConfig {
    period_ns: 0,
    access_ns: 0,
    hot_ns: 0,
    migrate_ns: 0,
    latency_percent: 300,
    bandwidth_percent: 200,
    cache_bytes: 4 << 20,
    sample_ns: 1_000_000,
};

/// A directory with a configuration and session files.
struct Setup {
    directory: TempDir,
}

impl Setup {
    fn new(mode: RuntimeMode, emulation: Option<EmulationConfig>) -> Self {
        let mut header = ConfigHeader::new(mode);
        header.depth = 4;
        header.own_arena_bytes = 64 << 10;
        header.tier_count = 2;
        header.default_tier = 1;
        let tiers_bytes = 2 * size_of::<TierRecord>() as u64;
        header.entries_offset = header.tiers_offset + tiers_bytes;
        header.callers_offset = header.entries_offset;
        header.file_bytes = header.callers_offset;
        let kinds = match emulation {
            Some(_) => [TierRecordKind::EmulatedFast, TierRecordKind::EmulatedSlow],
            None => [TierRecordKind::Nodes; 2],
        };
        if let Some(emulation) = emulation {
            header.emulation = emulation;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let mut file = File::create(directory.path().join("configuration")).expect("writable");
        file.write_all(header.as_bytes()).expect("room");
        for kind in kinds {
            let mut record = TierRecord {
                kind: kind as u32,
                policy: 1,
                capacity_bytes: if kind == TierRecordKind::Nodes {
                    u64::MAX
                } else {
                    1 << 30
                },
                nodes: [0; 16],
            };
            record.nodes[0] = 1;
            file.write_all(record.as_bytes()).expect("room");
        }
        Self { directory }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", library())
            .env(env::CONFIG, self.directory.path().join("configuration"))
            .env(env::SESSION, self.directory.path());
        command
    }

    /// The first session file of a process, once its header is there.
    fn session(&self, process: u32) -> File {
        let path = self.directory.path().join(format!("{process}.0"));
        let begun = Instant::now();
        loop {
            let file = File::options().read(true).write(true).open(&path);
            if let Ok(file) = file
                && word(&file, offset_of!(SessionHeader, version)) != 0
            {
                return file;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "no session");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn word(file: &File, at: usize) -> u32 {
    let mut bytes = [0; 4];
    match file.read_exact_at(&mut bytes, at as u64) {
        Ok(()) => u32::from_ne_bytes(bytes),
        Err(_) => 0,
    }
}

fn long(file: &File, at: usize) -> u64 {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at as u64).expect("is there");
    u64::from_ne_bytes(bytes)
}

fn said(output: &Output) -> String {
    format!(
        "{}{}exit {:?}, signal {:?}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status.code(),
        output.status.signal()
    )
}

/// The output of the program for misuse: each word with a status where the runtime works.
const STATUSES: &[(&str, i32)] = &[
    ("static", 0),
    ("twice", 6),
    ("overlap", 6),
    ("null name", 5),
    ("empty name", 5),
    ("long name", 5),
    ("control", 5),
    ("null", 5),
    ("empty", 5),
    ("end", 5),
    ("stack", 8),
    ("other stack", 8),
    ("deep in other stack", 8),
    ("beside other stack", 0),
    ("data beside", 0),
    ("own stack", 8),
    ("with own stack", 8),
    ("beside own stack", 0),
    ("own data", 0),
    ("stack of no thread", 0),
    ("data of no thread", 0),
    ("constant", 8),
    ("unmapped", 5),
    ("unknown", 7),
    ("unregister", 0),
    ("again", 7),
    ("renamed", 0),
    ("hint", 0),
    ("hint back", 0),
    ("bad hint", 5),
    ("no hint", 5),
    ("errno", 77),
    ("statistics", 0),
    ("short statistics", 5),
    ("odd statistics", 5),
    ("wild statistics", 5),
    ("no statistics", 5),
    ("short options", 5),
    ("no options", 5),
    ("bad policy", 5),
    ("bad share", 5),
    ("no number", 5),
    ("short result", 5),
    ("optimize", 2),
    ("frequency", 5),
    ("no object", 7),
    ("short object", 5),
    ("null object", 5),
];

/// The lines that the program for misuse prints.
fn expected(works: bool) -> String {
    let mut lines = String::new();
    for &(word, status) in STATUSES {
        let status = if works || word == "errno" { status } else { 1 };
        lines += &format!("{word} {status}\n");
        match word {
            "statistics" if works => lines += "objects 1 1048576\n",
            "statistics" => lines += "objects 0 0\n",
            "optimize" if works => lines += "result 2 0\n",
            "optimize" => lines += "result 1 0\n",
            _ => {}
        }
    }
    lines + "errors 0\nexit Some(0), signal None"
}

#[test]
fn a_program_runs_without_the_library_however_it_is_linked() {
    let ways: [&[&str]; 5] = [
        &[],
        &["-no-pie", "-fno-pie"],
        &["-O3", "-flto"],
        &["-fvisibility=hidden", "-Wl,-z,now"],
        &["-static"],
    ];
    for (number, way) in ways.iter().enumerate() {
        let program = build(&format!("interface-plain-{number}"), way);
        let output = Command::new(&program).output().expect("starts");
        assert_eq!(said(&output), expected(false), "{way:?}");
        let loaded = Setup::new(RuntimeMode::Profile, None);
        let output = loaded.command(&program).arg("version").output();
        let version = if way.contains(&"-static") {
            0
        } else {
            HEADER_VERSION
        };
        let found = format!("{version}\nexit Some(0), signal None");
        assert_eq!(said(&output.expect("starts")), found, "{way:?}");
    }
}

#[test]
fn misuse_is_answered_in_every_mode() {
    let program = build("interface-misuse", &[]);
    for mode in [
        RuntimeMode::Profile,
        RuntimeMode::Online,
        RuntimeMode::Guided,
    ] {
        let output = Setup::new(mode, None).command(&program).output();
        assert_eq!(said(&output.expect("starts")), expected(true), "{mode:?}");
    }
    let setup = Setup::new(RuntimeMode::PassThrough, None);
    let output = setup.command(&program).output();
    assert_eq!(said(&output.expect("starts")), expected(false));
}

/// Static data has tiers where memory is emulated by time.
#[test]
fn memory_without_tiers_cannot_be_registered_on_an_emulated_machine() {
    let program = build("interface-emulated", &[]);
    let ways = [
        (TRAPPED, "static 8\ntwice 8\n"),
        (TIMED, "static 0\ntwice 6\n"),
    ];
    for (emulation, first) in ways {
        let setup = Setup::new(RuntimeMode::Online, Some(emulation));
        let output = setup.command(&program).output().expect("starts");
        let said = said(&output);
        if said.contains("isotherm: ") {
            isotherm_skip::skip!("an emulated machine, because {}", said.trim());
            continue;
        }
        assert!(said.starts_with(first), "{said}");
        assert!(
            said.ends_with("errors 0\nexit Some(0), signal None"),
            "{said}"
        );
    }
}

/// An observer that answers the requests of a program, as `isotherm run` does.
struct Observer<'a> {
    file: &'a File,
    asked: Vec<[u64; 4]>,
}

impl Observer<'_> {
    const AT: usize = offset_of!(SessionHeader, interface);

    fn put(&self, field: usize, bytes: &[u8]) {
        let at = (Self::AT + field) as u64;
        self.file.write_all_at(bytes, at).expect("writable");
    }

    fn serve(&self, process: u32) {
        let field = offset_of!(InterfaceRequest, observer_pid);
        self.put(field, &process.to_ne_bytes());
    }

    /// Two objects, the second without a name, whose numbers count from 1 on.
    fn put_objects(&self) {
        let table = offset_of!(SessionHeader, outcomes);
        let first = long(self.file, table + offset_of!(OutcomeTable, offset));
        for number in 0..2 {
            let record = first + number * size_of::<OutcomeRecord>() as u64;
            let name = if number == 0 { b"ranks\0" } else { &[0; 6] };
            let words = (1..18).flat_map(u64::to_ne_bytes).collect::<Vec<u8>>();
            let numbers = record + offset_of!(OutcomeRecord, address) as u64;
            self.file.write_all_at(name, record).expect("writable");
            self.file.write_all_at(&words, numbers).expect("writable");
        }
        let count = (table + offset_of!(OutcomeTable, count)) as u64;
        self.file
            .write_all_at(&2_u64.to_ne_bytes(), count)
            .expect("writable");
    }

    /// Answers until the program has ended.
    fn answer(&mut self, child: &mut Child) {
        while child.try_wait().expect("is ours").is_none() {
            let asked = word(self.file, Self::AT + offset_of!(InterfaceRequest, asked));
            let answered = offset_of!(InterfaceRequest, answered);
            if asked == word(self.file, Self::AT + answered) {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let kind = word(self.file, Self::AT + offset_of!(InterfaceRequest, kind));
            let policy = word(self.file, Self::AT + offset_of!(InterfaceRequest, policy));
            let frequency = word(
                self.file,
                Self::AT + offset_of!(InterfaceRequest, frequency),
            );
            let number = |field| long(self.file, Self::AT + field);
            self.asked.push([
                kind.into(),
                (policy + frequency).into(),
                number(offset_of!(InterfaceRequest, fast_bytes)),
                number(offset_of!(InterfaceRequest, share_ppm)),
            ]);
            // So slowly that another thread of the program comes in between.
            std::thread::sleep(Duration::from_millis(100));
            let first = offset_of!(InterfaceRequest, promoted_bytes);
            for value in 1..=10 + REASONS as u64 {
                let numbers = if kind == 3 { value } else { 0 };
                let field = first + 8 * (value as usize - 1);
                self.put(field, &numbers.to_ne_bytes());
            }
            if kind == 3 {
                self.put_objects();
            }
            let profiling = offset_of!(InterfaceRequest, profiling);
            self.put(profiling, &u32::from(kind == 1).to_ne_bytes());
            self.put(answered, &asked.to_ne_bytes());
        }
    }
}

/// Runs the program in this way beside an observer. Returns what it printed, and what it asked.
fn served(name: &str, way: &str) -> (Output, Vec<[u64; 4]>) {
    let program = build(name, &[]);
    let setup = Setup::new(RuntimeMode::Online, None);
    let mut command = setup.command(&program);
    let mut child = command
        .arg(way)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let file = setup.session(child.id());
    let mut observer = Observer {
        file: &file,
        asked: Vec::new(),
    };
    observer.serve(std::process::id());
    observer.answer(&mut child);
    let asked = observer.asked;
    (child.wait_with_output().expect("ended"), asked)
}

#[test]
fn an_observer_answers_one_thread_at_a_time_and_no_child() {
    let (output, asked) = served("interface-ask", "ask");
    let (first, both) = asked.split_at(4);
    assert_eq!(
        first,
        [
            [1, 0, 0, 0],
            [2, 0, 0, 0],
            [1, 2000, 0, 0],
            [3, 2, 12345, 250_000]
        ]
    );
    // One of two threads each time, until both asked at one time.
    assert!(!both.is_empty(), "{asked:?}");
    assert!(both.iter().all(|it| *it == [3, 0, 0, 0]), "{asked:?}");
    let all = 1 + both.len();
    let lines = format!(
        "profiling 1\nstop 0\noften 0\noptimize 0\nobject ranks 1 2 9 17\nobject  1 2 9 17\nlast object 7\n\
         result 1 2 3 4 5 6 7 8\ncapacity 9 stayed 10 11 12 13 14 15 16 17 frequency 18\ntwo 4\nchild 2\nall {all} {all} {}\n",
        2 * all
    );
    assert_eq!(said(&output), format!("{lines}exit Some(0), signal None"));
}

#[test]
fn structs_of_an_older_header_and_of_a_newer_one_are_served() {
    let (output, asked) = served("interface-versions", "versions");
    let result = size_of::<InterfaceResult>();
    let statistics = size_of::<InterfaceStatistics>();
    let lines = format!(
        "old 0, 72 bytes, kept\nsamples 6\nnew 0, {result} bytes, kept\noptions 0, 320 bytes, kept\n\
         old 0, 64 bytes, kept\nnew 0, {statistics} bytes, kept\n"
    );
    assert_eq!(said(&output), format!("{lines}exit Some(0), signal None"));
    let limits = [3, 2, 12345, 250_000];
    assert_eq!(asked, [[1, 0, 0, 0], limits, limits]);
}

/// Builds the program with a header that is as this one, but of another version.
fn build_version(version: u32) -> PathBuf {
    let directory = tempfile::tempdir().expect("a directory");
    let header = std::fs::read_to_string(include().join("isotherm.h")).expect("reads");
    let own = format!("#define ISOTHERM_HEADER_VERSION {HEADER_VERSION}\n");
    assert!(header.contains(&own));
    let other = format!("#define ISOTHERM_HEADER_VERSION {version}\n");
    let header = header.replace(&own, &other);
    std::fs::write(directory.path().join("isotherm.h"), header).expect("writes");
    build_with(
        &format!("interface-version-{version}"),
        &[],
        directory.path(),
    )
}

#[test]
fn a_header_of_the_same_hundred_is_served() {
    for version in [100, 199] {
        let program = build_version(version);
        let setup = Setup::new(RuntimeMode::Profile, None);
        let output = setup.command(&program).output().expect("starts");
        assert_eq!(said(&output), expected(true), "version {version}");
    }
}

#[test]
fn a_header_of_another_hundred_is_refused_once_and_the_program_runs_on() {
    for version in [99, 200] {
        let program = build_version(version);
        let setup = Setup::new(RuntimeMode::Profile, None);
        let mut command = setup.command(&program);
        let output = command.arg("refused").output().expect("starts");
        let alone = Command::new(&program).arg("refused").output();
        let alone = alone.expect("starts");
        assert_eq!(output.stdout, alone.stdout);
        assert!(output.status.success() && alone.status.success());
        let sentence = String::from_utf8_lossy(&output.stderr).into_owned();
        let has_version = sentence.contains(&format!("has version {version} of isotherm.h"));
        assert!(
            has_version && sentence.contains("serves versions 100 to 199"),
            "{sentence}"
        );
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        assert!(alone.stderr.is_empty());
    }
}

#[test]
fn a_program_whose_observer_has_ended_runs_on() {
    let program = build("interface-left", &[]);
    let setup = Setup::new(RuntimeMode::Online, None);
    let mut command = setup.command(&program);
    let mut child = command
        .arg("ask")
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let file = setup.session(child.id());
    let mut gone = Command::new("true").spawn().expect("starts");
    gone.wait().expect("ended");
    let observer = Observer {
        file: &file,
        asked: Vec::new(),
    };
    // The program tries to begin a profile until it is observed: the observer says so, dies, and another answers.
    observer.serve(gone.id());
    std::thread::sleep(Duration::from_secs(4));
    assert!(child.try_wait().expect("is ours").is_none());
    let mut observer = observer;
    observer.serve(std::process::id());
    observer.answer(&mut child);
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success(), "{}", said(&output));
}

/// Waits for the line in which a program says that it is ready.
fn lines_of(child: &mut Child, last: &str) -> Vec<String> {
    use std::io::{BufRead, BufReader};
    let output = child.stdout.take().expect("is piped");
    let mut lines = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line.expect("is text");
        let is_last = line.starts_with(last);
        lines.push(line);
        if is_last {
            break;
        }
    }
    lines
}

#[test]
fn named_data_is_published_under_its_names() {
    let program = build("interface-names", &[]);
    let setup = Setup::new(RuntimeMode::Profile, None);
    let mut child = setup
        .command(&program)
        .arg("names")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let lines = lines_of(&mut child, "0x");
    assert_eq!(
        lines[..6],
        [
            "static 0",
            "mapping 0",
            "gone 0",
            "gone 0",
            "hot 0",
            "cold 0"
        ]
    );
    let addresses: Vec<u64> = lines[6]
        .split(' ')
        .map(|text| u64::from_str_radix(&text[2..], 16).expect("an address"))
        .collect();
    let file = setup.session(child.id());
    let sites = sites(&file);
    let site = |name: &str| {
        let wanted = site_of_name(name.as_bytes());
        let found = sites.iter().position(|(hash, _)| *hash == wanted);
        found.unwrap_or_else(|| panic!("no {name} in {sites:?}")) as u32
    };
    assert_eq!(sites[site("edges of web") as usize].1, "edges of web");
    check_mappings(&file, &addresses, site);
    check_objects_and_hints(&file, &addresses, site("edges of web"));
    drop(child.stdin.take());
    assert!(child.wait().expect("ended").success());
}

/// The array and the named part of the mapping are their names' sites'; the rest of the mapping is not.
fn check_mappings(file: &File, addresses: &[u64], site: impl Fn(&str) -> u32) {
    let mappings = mappings(file);
    let named = |site: u32| mappings.iter().find(|mapping| mapping.0 == site);
    assert_eq!(
        named(site("array")),
        Some(&(site("array"), addresses[1], 1 << 20))
    );
    assert_eq!(
        named(site("ranks")),
        Some(&(site("ranks"), addresses[2], 1 << 20))
    );
    assert_eq!(named(site("gone")), None, "{mappings:?}");
    let of_mapping = mappings.iter().map(|mapping| mapping.2).sum::<u64>();
    assert_eq!(
        of_mapping,
        (4 << 20) + (1 << 20),
        "the rest is still the mapping's"
    );
}

/// The object is published as its site's, and both hints are.
fn check_objects_and_hints(file: &File, addresses: &[u64], edges: u32) {
    let ring =
        offset_of!(SessionHeader, objects) + offset_of!(isotherm_abi::session::ObjectRing, offset);
    let first = long(file, ring) as usize;
    assert_eq!(
        long(file, first + offset_of!(ObjectRecord, address)),
        addresses[0]
    );
    assert_eq!(word(file, first + offset_of!(ObjectRecord, site)), edges);
    let hint = |slot: usize| {
        let at = offset_of!(SessionHeader, hints) + slot * size_of::<HintRecord>();
        let address = long(file, at + offset_of!(HintRecord, address));
        (address, word(file, at + offset_of!(HintRecord, hint)))
    };
    assert_eq!(hint(0), (addresses[1], InterfaceHint::Hot as u32));
    assert_eq!(hint(1), (addresses[0], InterfaceHint::Cold as u32));
}

/// Hash and text of each site.
fn sites(file: &File) -> Vec<(u64, String)> {
    let count = word(file, offset_of!(SessionHeader, site_count)) as usize;
    let first = long(file, offset_of!(SessionHeader, sites_offset)) as usize;
    let site = |number: usize| {
        let at = first + number * size_of::<SiteRecord>();
        let mut text = [0; 64];
        let frames = at + offset_of!(SiteRecord, frames);
        file.read_exact_at(&mut text, frames as u64)
            .expect("is there");
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(64);
        let text = String::from_utf8_lossy(&text[..end]).into_owned();
        (long(file, at + offset_of!(SiteRecord, hash)), text)
    };
    (0..count).map(site).collect()
}

/// Site, address and bytes of each mapping that is there.
fn mappings(file: &File) -> Vec<(u32, u64, u64)> {
    let count = word(file, offset_of!(SessionHeader, mapping_count)) as usize;
    let first = long(file, offset_of!(SessionHeader, mappings_offset)) as usize;
    let mapping = |number: usize| {
        let at = first + number * size_of::<MappingRecord>();
        (
            word(file, at + offset_of!(MappingRecord, site)),
            long(file, at + offset_of!(MappingRecord, address)),
            long(file, at + offset_of!(MappingRecord, bytes)),
        )
    };
    (0..count)
        .map(mapping)
        .filter(|mapping| mapping.2 > 0)
        .collect()
}

#[test]
fn random_misuse_ends_no_program() {
    let program = build("interface-random", &[]);
    let seed = std::env::var("ISOTHERM_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("after 1970").as_nanos() as u64 | 1
    });
    println!("ISOTHERM_SEED={seed}");
    let ways = [
        (RuntimeMode::Profile, None),
        (RuntimeMode::Online, None),
        (RuntimeMode::Guided, None),
        (RuntimeMode::Online, Some(TRAPPED)),
        (RuntimeMode::Online, Some(TIMED)),
    ];
    for (mode, emulation) in ways {
        let setup = Setup::new(mode, emulation);
        let mut command = setup.command(&program);
        let output = command.args(["random", &seed.to_string()]).output();
        let output = output.expect("starts");
        let said = said(&output);
        if emulation.is_some() && said.contains("isotherm: ") {
            isotherm_skip::skip!("an emulated machine, because {}", said.trim());
            continue;
        }
        assert_eq!(said, "done\nexit Some(0), signal None", "{mode:?} {seed}");
    }
}
