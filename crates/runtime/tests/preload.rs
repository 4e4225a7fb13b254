//! Tests that programs of every kind run the same with the library preloaded as without it, in every mode.
//!
//! The programs in `programs/` are built with the machine's C and C++ compilers and run plain, then under each
//! configuration; output, error output and exit status must be the same. Modes that the kernel does not allow
//! here are skipped with a printed reason.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use isotherm_abi::config::{
    ConfigHeader, EmulationConfig, Mover, PlanEntry, RuntimeMode, TierRecord, TierRecordKind,
};
use isotherm_abi::env;
use isotherm_abi::session::{SessionCounter, SessionHeader};
use zerocopy::IntoBytes;

/// The folder for the programs that the tests build.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the build folder is writable");
    folder
}

/// The library under test, built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("a test lies in a folder");
    let library = folder.join("libisotherm.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// Builds a program of `programs/`; tests that need the same one build it one after the other.
fn build(name: &str, options: &[&str]) -> PathBuf {
    // A program that is built again while another test starts it is absent for a moment.
    static BUILT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut built_before = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    let program = folder("programs").join(format!("{name}{}", options.concat().replace('/', "_")));
    if built_before.contains(&program) {
        return program;
    }
    let compiler = if name.ends_with(".cc") { "c++" } else { "cc" };
    let built = Command::new(compiler)
        .args(["-O1", "-w"])
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .args(["-lpthread", "-ldl"])
        .output()
        .unwrap_or_else(|error| panic!("{compiler} does not start: {error}"));
    let complaint = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{name} is not built: {complaint}");
    built_before.insert(program.clone());
    program
}

/// One way to run.
struct Way {
    name: &'static str,
    mode: RuntimeMode,
    depth: u32,
    tiers: &'static [TierRecordKind],
    emulation: EmulationConfig,
    /// Whether the plan knows the callers of its sites, so that the others need no lookup.
    callers: bool,
    mover: Mover,
}

const NO_EMULATION: EmulationConfig = EmulationConfig {
    period_ns: 0,
    access_ns: 0,
    hot_ns: 0,
    migrate_ns: 0,
    latency_percent: 0,
    bandwidth_percent: 0,
    cache_bytes: 0,
    sample_ns: 0,
};

const EMULATION: EmulationConfig = EmulationConfig {
    period_ns: 50_000_000,
    access_ns: 10_000,
    hot_ns: 13_000,
    migrate_ns: 50_000,
    ..NO_EMULATION
};

const BY_TIME: EmulationConfig = EmulationConfig {
    latency_percent: 300,
    bandwidth_percent: 200,
    cache_bytes: 4 << 20,
    sample_ns: 1_000_000,
    ..NO_EMULATION
};

const NODES: TierRecordKind = TierRecordKind::Nodes;
const PAIR: &[TierRecordKind] = &[TierRecordKind::EmulatedFast, TierRecordKind::EmulatedSlow];

const fn way(name: &'static str, mode: RuntimeMode, tiers: &'static [TierRecordKind]) -> Way {
    Way {
        name,
        mode,
        depth: 4,
        tiers,
        emulation: NO_EMULATION,
        callers: false,
        mover: Mover::Kernel,
    }
}

/// Configurations that work on any machine.
fn plain_ways() -> Vec<Way> {
    let direct = Way {
        depth: 1,
        ..way("profile, one caller", RuntimeMode::Profile, &[NODES])
    };
    let deep = Way {
        depth: 8,
        ..way("profile, eight callers", RuntimeMode::Profile, &[])
    };
    vec![
        way("pass-through", RuntimeMode::PassThrough, &[]),
        way("profile", RuntimeMode::Profile, &[NODES]),
        direct,
        deep,
        way("guided", RuntimeMode::Guided, &[NODES, NODES]),
        Way {
            callers: true,
            ..way("guided, by callers", RuntimeMode::Guided, &[NODES, NODES])
        },
        way("guided, six tiers", RuntimeMode::Guided, &[NODES; 6]),
        way("online", RuntimeMode::Online, &[NODES, NODES]),
        Way {
            mover: Mover::Staged,
            ..way(
                "online, a mover inside",
                RuntimeMode::Online,
                &[NODES, NODES],
            )
        },
    ]
}

/// Configurations that need userfaultfd with `UFFDIO_MOVE`, or perf events of a program's own threads.
fn emulated_ways() -> Vec<Way> {
    let trapped = [
        way("profile, emulated", RuntimeMode::Profile, PAIR),
        way("guided, emulated", RuntimeMode::Guided, PAIR),
        way("online, emulated", RuntimeMode::Online, PAIR),
    ];
    let timed = [
        way("guided, emulated by time", RuntimeMode::Guided, PAIR),
        way("online, emulated by time", RuntimeMode::Online, PAIR),
    ];
    let with = |emulation| move |way| Way { emulation, ..way };
    let trapped = trapped.into_iter().map(with(EMULATION));
    trapped
        .chain(timed.into_iter().map(with(BY_TIME)))
        .collect()
}

impl Way {
    /// Writes the configuration file. The plan names a site that does not exist, so that guided runs have a
    /// table to search.
    fn configuration(&self) -> PathBuf {
        let entry = PlanEntry {
            hash: 5,
            tier: 0,
            reserved: 0,
        };
        let entries = if self.tiers.is_empty() {
            Vec::new()
        } else {
            let mut entries = vec![PlanEntry::default(); 4];
            entries[1] = entry;
            entries
        };
        let callers = vec![PlanEntry::default(); usize::from(self.callers)];
        let tiers_bytes = self.tiers.len() * size_of::<TierRecord>();
        let mut header = ConfigHeader::new(self.mode);
        header.depth = self.depth;
        header.default_tier = self.tiers.len().saturating_sub(1) as u32;
        header.own_arena_bytes = 64 << 10;
        header.tier_count = self.tiers.len() as u32;
        header.entry_slots = entries.len() as u32;
        header.entries_offset = header.tiers_offset + tiers_bytes as u64;
        header.caller_slots = callers.len() as u32;
        header.callers_offset = header.entries_offset + std::mem::size_of_val(&entries[..]) as u64;
        header.file_bytes = header.callers_offset + std::mem::size_of_val(&callers[..]) as u64;
        header.emulation = self.emulation;
        header.mover = self.mover as u32;
        // A new file for each call: another test may be reading the last one.
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let path = folder("configurations").join(format!("{call}"));
        let mut file = std::fs::File::create(&path).expect("the folder is writable");
        file.write_all(header.as_bytes()).expect("room");
        for &kind in self.tiers {
            let mut record = TierRecord {
                kind: kind as u32,
                policy: 1,
                capacity_bytes: if kind == NODES { u64::MAX } else { 1 << 30 },
                nodes: [0; 16],
            };
            record.nodes[0] = 1;
            file.write_all(record.as_bytes()).expect("room");
        }
        for entry in entries.iter().chain(&callers) {
            file.write_all(entry.as_bytes()).expect("room");
        }
        path
    }

    /// Runs a program under this configuration.
    fn run(&self, program: &Path, arguments: &[&OsStr], sessions: &Path) -> Output {
        Command::new(program)
            .args(arguments)
            .env("LD_PRELOAD", library())
            .env(env::CONFIG, self.configuration())
            .env(env::SESSION, sessions)
            .output()
            .expect("the program starts")
    }
}

/// Whether the emulation works here.
fn emulation_works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let sessions = folder("sessions of the trial");
        let way = &emulated_ways()[0];
        let output = way.run(Path::new("/bin/true"), &[], &sessions);
        let reason = String::from_utf8_lossy(&output.stderr);
        if !reason.is_empty() {
            isotherm_skip::skip!("emulated ways, because {}", reason.trim());
        }
        reason.is_empty()
    })
}

/// The output of a run and its exit status.
fn story(output: &Output) -> String {
    format!(
        "{}{}exit {:?}, signal {:?}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status.code(),
        output.status.signal()
    )
}

/// Runs a program plain and under every configuration, and compares.
fn same_in_every_way(program: &Path, arguments: &[&OsStr]) {
    let plain = Command::new(program).args(arguments).output();
    let plain = story(&plain.expect("the program starts"));
    same_in(program, arguments, &plain, |_| true);
}

/// Runs a program under the chosen configurations, and compares with what it prints and how it ends by itself.
fn same_in(program: &Path, arguments: &[&OsStr], expected: &str, chosen: impl Fn(&Way) -> bool) {
    let mut ways = plain_ways();
    if emulation_works() {
        ways.extend(emulated_ways());
    }
    let sessions = folder("sessions");
    for way in ways.into_iter().filter(chosen) {
        let output = way.run(program, arguments, &sessions);
        assert_eq!(
            story(&output),
            expected,
            "{} differs: {}",
            program.display(),
            way.name
        );
    }
}

#[test]
fn every_edge_of_the_interface_is_as_without() {
    same_in_every_way(&build("edges.cc", &["-std=c++17"]), &[]);
}

#[test]
fn threads_come_and_go_and_hand_over_their_blocks() {
    same_in_every_way(&build("threads.c", &[]), &[]);
}

#[test]
fn forks_of_a_program_whose_threads_allocate_work() {
    same_in_every_way(&build("forks.c", &[]), &[]);
}

/// Where sites have their own arenas, a handler is served by an instance of its own. In the other modes it is served as by
/// jemalloc alone, as README.md documents: some runs of such a program never end, by jemalloc and by the C library's allocator alike.
fn serves_handlers(way: &Way) -> bool {
    matches!(way.mode, RuntimeMode::Profile | RuntimeMode::Online)
}

#[test]
fn handlers_of_signals_may_allocate() {
    let expected = "ticked, jumped 1\nexit Some(0), signal None";
    same_in(&build("signals.c", &[]), &[], expected, serves_handlers);
}

#[test]
fn handlers_are_served_in_the_middle_of_an_allocation() {
    let expected = "0 blocks changed\nexit Some(0), signal None";
    same_in(&build("handlers.c", &[]), &[], expected, serves_handlers);
}

#[test]
fn modules_exceptions_and_late_destructors_work() {
    let first = build("module.c", &["-shared", "-fPIC", "-DMARK=1"]);
    let second = build("module.c", &["-shared", "-fPIC", "-DMARK=2"]);
    let program = build("modules.cc", &["-std=c++17"]);
    same_in_every_way(&program, &[first.as_os_str(), second.as_os_str()]);
}

#[test]
fn mappings_keep_their_contents() {
    same_in_every_way(&build("mappings.c", &[]), &[]);
}

/// The library's own thread does not outlive the program's last one, and the program ends as without it.
#[test]
fn a_program_that_ends_its_last_thread_alone_ends() {
    let program = build("ends_alone.c", &[]);
    // Nothing but SIGKILL ends a process whose only thread blocks every signal.
    let ends: Vec<&OsStr> = ["-s", "KILL", "20"].map(OsStr::new).to_vec();
    let hows = [
        "exit",
        "strict",
        "strict-killed",
        "filter",
        "filter-killed",
        "filter-whole",
        "thread",
    ];
    for how in hows {
        let words = [&ends[..], &[program.as_os_str(), OsStr::new(how)]].concat();
        same_in_every_way(Path::new("/usr/bin/timeout"), &words);
    }
}

/// A library that is loaded with `RTLD_DEEPBIND` has blocks of the C library's, which the program frees.
#[test]
fn blocks_of_the_c_library_go_back_to_it() {
    let module = build("deepbind_module.c", &["-shared", "-fPIC", "-fno-builtin"]);
    let program = build("deepbind.c", &["-fno-builtin"]);
    let plain = Command::new(&program).arg(&module).output();
    let plain = story(&plain.expect("the program starts"));
    let expected = "its own allocator: yes\n250 of 250\nexit Some(3), signal None";
    assert_eq!(plain, expected);
    same_in_every_way(&program, &[module.as_os_str()]);
}

/// A truncated configuration is reported in one sentence, and the program continues.
#[test]
fn a_bad_configuration_is_said_once_and_the_program_runs() {
    let path = folder("configurations").join("cut short");
    let whole = std::fs::read(plain_ways()[1].configuration()).expect("it was just written");
    std::fs::write(&path, &whole[..whole.len() - 1]).expect("the folder is writable");
    let output = Command::new("/bin/echo")
        .arg("here")
        .env("LD_PRELOAD", library())
        .env(env::CONFIG, &path)
        .output()
        .expect("echo starts");
    assert_eq!(output.stdout, b"here\n");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("isotherm: off in process "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// A program that may not write large files is profiled without a session, and is not killed.
#[test]
fn a_file_size_limit_only_ends_publication() {
    let way = &plain_ways()[1];
    let output = Command::new("/bin/sh")
        .args([
            "-c",
            "ulimit -f 100; LD_PRELOAD=$1 exec /bin/echo here",
            "sh",
        ])
        .arg(library())
        .env(env::CONFIG, way.configuration())
        .env(env::SESSION, folder("sessions"))
        .output()
        .expect("sh starts");
    assert_eq!(output.stdout, b"here\n");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("session file could not be written"), "{said}");
}

/// Where address space is scarce the library turns itself off.
#[test]
fn a_limit_of_the_address_space_turns_the_library_off() {
    let way = &plain_ways()[1];
    let output = Command::new("/bin/sh")
        .args([
            "-c",
            "ulimit -v 4000000; LD_PRELOAD=$1 exec /bin/echo here",
            "sh",
        ])
        .arg(library())
        .env(env::CONFIG, way.configuration())
        .output()
        .expect("sh starts");
    assert_eq!(output.stdout, b"here\n");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("address space"), "{said}");
}

/// An empty folder for the sessions of one run.
fn fresh_sessions(name: &str) -> PathBuf {
    let sessions = folder(name);
    for entry in std::fs::read_dir(&sessions).expect("the folder is there") {
        let _ = std::fs::remove_file(entry.expect("it is readable").path());
    }
    sessions
}

/// The session file of a run of one process.
fn session(sessions: &Path) -> Vec<u8> {
    let file = std::fs::read_dir(sessions)
        .expect("the folder is there")
        .map(|entry| entry.expect("it is readable").path())
        .next()
        .expect("the run left a session");
    std::fs::read(file).expect("it is readable")
}

/// A counter of a run.
fn counter(session: &[u8], counter: SessionCounter) -> u64 {
    let at = std::mem::offset_of!(SessionHeader, counters) + counter as usize * 8;
    u64::from_le_bytes(session[at..at + 8].try_into().expect("it has eight bytes"))
}

/// The names of the sites of a run, in their order.
fn site_names(sessions: &Path) -> Vec<u64> {
    let bytes = session(sessions);
    let number = |offset: usize, bytes_wide: usize| {
        let mut value = [0; 8];
        value[..bytes_wide].copy_from_slice(&bytes[offset..offset + bytes_wide]);
        u64::from_le_bytes(value)
    };
    let count = number(std::mem::offset_of!(SessionHeader, site_count), 4) as usize;
    let sites = number(std::mem::offset_of!(SessionHeader, sites_offset), 8) as usize;
    (0..count)
        .map(|site| number(sites + site * 184, 8))
        .collect()
}

/// Sites keep their names from run to run, wherever the modules are loaded.
#[test]
fn the_names_of_sites_are_the_same_in_each_run() {
    let program = build("edges.cc", &["-std=c++17"]);
    let runs: Vec<Vec<u64>> = ["names of run 1", "names of run 2"]
        .iter()
        .map(|name| {
            let sessions = fresh_sessions(name);
            let output = plain_ways()[1].run(&program, &[], &sessions);
            assert_eq!(output.status.code(), Some(3));
            let mut names = site_names(&sessions);
            names.sort_unstable();
            names
        })
        .collect();
    assert!(runs[0].len() > 10, "only {} sites", runs[0].len());
    assert_eq!(runs[0], runs[1]);
}

/// Allocations of one context are all counted; it is unwound again, but ever more rarely.
#[test]
fn a_context_that_proves_right_is_checked_ever_more_rarely() {
    let program = build("contexts.c", &[]);
    for way in plain_ways() {
        if way.depth == 1 || way.mode == RuntimeMode::PassThrough || way.callers {
            continue;
        }
        let sessions = fresh_sessions(&format!("checks, {}", way.name));
        assert!(way.run(&program, &[], &sessions).status.success());
        let session = session(&sessions);
        let count = |name| counter(&session, name);
        let allocations = count(SessionCounter::Allocations);
        assert!(
            (200_000..201_000).contains(&allocations),
            "{}: {allocations}",
            way.name
        );
        // After 1,024 hits, 2,048 more and so on: seven times, and as often again by other contexts.
        let checks = count(SessionCounter::ContextChecks);
        assert!((5..20).contains(&checks), "{}: {checks}", way.name);
    }
}

/// jemalloc's report of its memory is true wherever the plan puts the data.
#[test]
fn statistics_count_the_data_of_every_tier() {
    let program = build("totals.c", &[]);
    for way in plain_ways() {
        let sessions = fresh_sessions(&format!("totals, {}", way.name));
        let output = way.run(&program, &[], &sessions);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let all = "stats.allocated: all\nstats.active: all\nstats.resident: all\n";
        assert_eq!(said, all, "{}", way.name);
    }
}

/// A caller without a site in the plan is looked up once, whatever its contexts.
#[test]
fn a_caller_whose_data_all_goes_to_one_tier_is_not_unwound_again() {
    let program = build("contexts.c", &[]);
    let way = plain_ways().into_iter().find(|way| way.callers).unwrap();
    let sessions = fresh_sessions("callers");
    let output = way.run(&program, &[OsStr::new("far")], &sessions);
    assert!(output.status.success());
    let session = session(&sessions);
    let looked_at = counter(&session, SessionCounter::Allocations);
    assert!(looked_at < 100, "{looked_at} of 200,001 allocations");
    assert_eq!(counter(&session, SessionCounter::ContextMismatches), 0);
}

/// A context that was mistaken for another one is detected, and not guessed again.
#[test]
fn a_return_address_that_was_guessed_wrong_is_always_unwound() {
    let program = build("contexts.c", &[]);
    let way = &plain_ways()[1];
    let sessions = fresh_sessions("wrong guesses");
    let output = way.run(&program, &[OsStr::new("far")], &sessions);
    assert!(output.status.success());
    let session = session(&sessions);
    let count = |name| counter(&session, name);
    assert_eq!(count(SessionCounter::ContextMismatches), 1);
    let misses = count(SessionCounter::ContextMisses);
    assert!(misses > 190_000, "only {misses} of 200,000 were unwound");
}

/// A debugger that searches for `malloc` must find the one that programs call: no function of ours has the name
/// of an exported one, and no other is described to a debugger by its bare name.
#[test]
fn no_local_symbol_shares_a_name_with_an_exported_one() {
    let listing = |program: &str, options: &[&str]| {
        let output = Command::new(program).args(options).arg(library()).output();
        let output = output.unwrap_or_else(|error| panic!("{program} does not start: {error}"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let exported: BTreeSet<&str> = include_str!("../exports.txt").lines().collect();
    let symbols = listing("nm", &["-C", "--defined-only"]);
    let local = symbols.lines().filter_map(|line| {
        let (kind, name) = line.split_once(' ')?.1.split_once(' ')?;
        kind.starts_with(|kind: char| kind.is_ascii_lowercase())
            .then_some(name)
    });
    let local: Vec<&str> = local.collect();
    assert!(local.len() > 1_000, "only {} local symbols", local.len());
    let of_ours = |name: &str| name.starts_with("isotherm") || !name.contains("::");
    let shared: Vec<&str> = local
        .into_iter()
        .filter(|name| of_ours(name))
        .filter(|name| {
            name.rsplit("::")
                .next()
                .is_some_and(|last| exported.contains(last))
        })
        .collect();
    assert!(shared.is_empty(), "{shared:?}");
    let sections = listing("readelf", &["--sections", "--wide"]);
    assert!(sections.contains(".symtab") && !sections.contains(".debug_info"));
}

/// The exported names are the reviewed ones.
#[test]
fn the_library_exports_the_reviewed_names_and_no_other() {
    let listing = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(library())
        .output()
        .expect("nm starts");
    let listing = String::from_utf8_lossy(&listing.stdout);
    let mut names: Vec<&str> = listing
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    names.sort_unstable();
    let reviewed: Vec<&str> = include_str!("../exports.txt").lines().collect();
    assert_eq!(names, reviewed);
}
