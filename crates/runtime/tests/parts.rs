//! Tests that guided runs place parts of a site's objects, or its first memory, on the machine emulated by time and on nodes. Both
//! tiers of nodes are on one node here: the memory policy of an address says in which tier it was placed.

use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use isotherm_abi::capacity::{CapacityHeader, FILE_BYTES, FILE_NAME, first_bytes};
use isotherm_abi::config::{
    ConfigHeader, EmulationConfig, LEADING, LeadingRecord, NODE_WORDS, PartRecord, PlanEntry,
    RuntimeMode, SPLIT, SplitRecord, TierRecord, TierRecordKind,
};
use isotherm_abi::env;
use isotherm_abi::session::{SessionCounter, SessionHeader, SiteRecord};
use zerocopy::IntoBytes;

const MIB: u64 = 1 << 20;
/// `MPOL_PREFERRED`, the policy of the fast tier here.
const FAST: u32 = 1;
/// `MPOL_BIND`, the policy of the slow tier.
const SLOW: u32 = 2;
/// MiB of the chunk that the fast heap of each process begins with.
const HEAP: u64 = 2;

/// The library under test, built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("libisotherm.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// Builds a program, one file a test: tests run at the same time.
fn build(name: &str, test: &str) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{test}"));
    let built = Command::new("cc")
        .args(["-O1", "-Wall", "-pthread", "-o"])
        .args([&program, &programs.join(name).with_extension("c")])
        .output()
        .expect("a C compiler");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    program
}

/// A configuration of two tiers.
#[derive(Clone)]
struct Setup {
    mode: RuntimeMode,
    tiers: [TierRecord; 2],
    emulation: EmulationConfig,
    /// Sites that have the split.
    sites: Vec<u64>,
    split: SplitRecord,
    parts: Vec<PartRecord>,
    /// The sites have this in place of the split.
    leading: Option<LeadingRecord>,
}

/// A part, in MiB from the object's start on.
fn part(start: u64, end: u64, tier: u32) -> PartRecord {
    PartRecord {
        start: start * MIB,
        end: end * MIB,
        tier,
        reserved: 0,
    }
}

impl Setup {
    /// Tiers of these kinds, the first with room for `fast_mib`. Everything is slow but the part from 4 to 8 MiB of each object.
    fn of(kinds: [TierRecordKind; 2], fast_mib: u64) -> Self {
        let tier = |kind: TierRecordKind, policy, capacity_bytes| {
            let mut nodes = [0; NODE_WORDS];
            nodes[0] = 1;
            TierRecord {
                kind: kind as u32,
                policy,
                capacity_bytes,
                nodes,
            }
        };
        Self {
            mode: RuntimeMode::Guided,
            tiers: [
                tier(kinds[0], FAST, fast_mib.saturating_mul(MIB)),
                tier(kinds[1], SLOW, 1 << 40),
            ],
            emulation: EmulationConfig::default(),
            sites: Vec::new(),
            split: SplitRecord {
                tier: 1,
                first_part: 0,
                parts: 1,
                reserved: 0,
            },
            parts: vec![part(4, 8, 0)],
            leading: None,
        }
    }

    /// The setup where the first `mib` MiB of the sites are fast.
    fn leading(self, mib: u64) -> Self {
        let leading = LeadingRecord {
            first_tier: 0,
            later_tier: 1,
            bytes: mib * MIB,
        };
        Self {
            leading: Some(leading),
            ..self
        }
    }

    fn emulated(fast_mib: u64) -> Self {
        let kinds = [TierRecordKind::EmulatedFast, TierRecordKind::EmulatedSlow];
        let emulation = EmulationConfig {
            latency_percent: 300,
            bandwidth_percent: 200,
            cache_bytes: 4 << 20,
            sample_ns: 1_000_000,
            ..EmulationConfig::default()
        };
        Self {
            emulation,
            ..Self::of(kinds, fast_mib)
        }
    }

    fn nodes(fast_mib: u64) -> Self {
        Self::of([TierRecordKind::Nodes; 2], fast_mib)
    }

    fn entries(&self) -> Vec<PlanEntry> {
        let slots = (self.sites.len() * 2).next_power_of_two();
        let mut entries = vec![PlanEntry::default(); slots];
        for &hash in &self.sites {
            let mut slot = hash as usize & (slots - 1);
            while entries[slot].hash != 0 {
                slot = (slot + 1) & (slots - 1);
            }
            entries[slot] = PlanEntry {
                hash,
                tier: self.leading.map_or(SPLIT, |_| LEADING),
                reserved: 0,
            };
        }
        entries
    }

    fn bytes(&self) -> Vec<u8> {
        let entries = self.entries();
        let mut header = ConfigHeader::new(self.mode);
        header.default_tier = 1;
        header.own_arena_bytes = 64 << 10;
        header.emulation = self.emulation;
        header.tier_count = 2;
        header.entry_slots = entries.len() as u32;
        header.split_count = 1;
        header.part_count = self.parts.len() as u32;
        header.entries_offset = header.tiers_offset + size_of_val(&self.tiers) as u64;
        header.callers_offset = header.entries_offset + size_of_val(&entries[..]) as u64;
        header.statics_offset = header.callers_offset;
        header.splits_offset = header.callers_offset;
        header.parts_offset = header.splits_offset + size_of::<SplitRecord>() as u64;
        header.leading_offset = header.parts_offset + size_of_val(&self.parts[..]) as u64;
        header.leading_count = self.leading.iter().len() as u32;
        let leading: Vec<LeadingRecord> = self.leading.into_iter().collect();
        header.file_bytes = header.leading_offset + size_of_val(&leading[..]) as u64;
        let tables = [
            header.as_bytes(),
            self.tiers.as_bytes(),
            entries.as_bytes(),
            self.split.as_bytes(),
            self.parts.as_bytes(),
            leading.as_bytes(),
        ];
        tables.concat()
    }
}

/// A run of a program.
struct Run {
    directory: tempfile::TempDir,
    output: Output,
}

impl Run {
    fn of(program: &Path, setup: &Setup, words: &str) -> Self {
        // Where the tools make it: a session file on a disk takes milliseconds.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let directory = directory.expect("a directory");
        let path = |name| directory.path().join(name);
        std::fs::write(path("configuration"), setup.bytes()).expect("room");
        let mut capacity = vec![0; FILE_BYTES];
        capacity[..first_bytes().len()].copy_from_slice(&first_bytes());
        std::fs::write(path(FILE_NAME), capacity).expect("room");
        let output = Command::new(program)
            .args(words.split(' '))
            .env("LD_PRELOAD", library())
            .env(env::CONFIG, path("configuration"))
            .env(env::SESSION, directory.path())
            .output()
            .expect("it starts");
        Self { directory, output }
    }

    /// Asserts that the program and Isotherm ended well, and returns the program's output.
    fn printed(&self) -> String {
        let said = String::from_utf8_lossy(&self.output.stderr);
        let printed = String::from_utf8_lossy(&self.output.stdout).into_owned();
        assert!(
            said.is_empty() && self.output.status.success(),
            "{said}{printed}"
        );
        printed
    }

    fn lines(&self) -> Vec<String> {
        let printed = self.printed();
        printed.lines().map(|line| line.trim().to_owned()).collect()
    }

    /// The session files of all processes.
    fn sessions(&self) -> Vec<Vec<u8>> {
        let files = std::fs::read_dir(self.directory.path()).expect("it is there");
        let names = files.map(|file| file.expect("readable").path());
        let is_session = |path: &PathBuf| path.extension().is_some();
        let sessions = names.filter(is_session);
        sessions
            .map(|path| std::fs::read(path).expect("readable"))
            .collect()
    }

    /// MiB in the fast and in the slow tier when each process ended, rounded to the nearest.
    fn mib(&self) -> Vec<(u64, u64)> {
        let counter = |session: &[u8], counter: SessionCounter| {
            let at = offset_of!(SessionHeader, counters) + counter as usize * 8;
            (word(session, at) + MIB / 2) / MIB
        };
        let bytes = |session: &Vec<u8>| {
            let fast = counter(session, SessionCounter::FastBytes);
            (fast, counter(session, SessionCounter::SlowBytes))
        };
        self.sessions().iter().map(bytes).collect()
    }

    /// Bytes that are still counted in the fast tier.
    fn left_in_the_ledger(&self) -> u64 {
        let file = std::fs::read(self.directory.path().join(FILE_NAME)).expect("readable");
        word(&file, offset_of!(CapacityHeader, placed))
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The names of the sites that request 64 KiB or more, from a run that records.
fn sites(program: &Path, setup: &Setup, words: &str) -> Vec<u64> {
    let recorded = Setup {
        mode: RuntimeMode::Profile,
        emulation: EmulationConfig::default(),
        ..setup.clone()
    };
    let run = Run::of(program, &recorded, words);
    run.printed();
    let of_session = |session: &Vec<u8>| -> Vec<u64> {
        let at = word(session, offset_of!(SessionHeader, sites_offset)) as usize;
        let count = word(session, offset_of!(SessionHeader, site_count)) as u32;
        let record = |site: u32| at + site as usize * size_of::<SiteRecord>();
        let requested = |at| word(session, at + offset_of!(SiteRecord, requested_bytes));
        let places = (0..count).map(record);
        places
            .filter(|&at| requested(at) >= 64 << 10)
            .map(|at| word(session, at))
            .collect()
    };
    run.sessions().iter().flat_map(of_session).collect()
}

/// Runs the program with the split at all of its sites.
fn run(program: &Path, setup: &Setup, words: &str) -> Run {
    let sites = sites(program, setup, words);
    assert!(!sites.is_empty(), "no site in {words}");
    let setup = Setup {
        sites,
        ..setup.clone()
    };
    Run::of(program, &setup, words)
}

/// Whether the emulation by time works here.
fn emulation_works(program: &Path) -> bool {
    let trial = Run::of(program, &Setup::emulated(64), "small");
    let reason = String::from_utf8_lossy(&trial.output.stderr);
    if !reason.is_empty() {
        isotherm_skip::skip!("the emulation by time, because {}", reason.trim());
    }
    reason.is_empty()
}

/// Runs `words` on the emulated machine: MiB in the fast and the slow tier at the end.
fn emulated(program: &Path, words: &str) -> (u64, u64) {
    let run = run(program, &Setup::emulated(64), words);
    run.printed();
    run.mib()[0]
}

#[test]
fn a_part_of_an_array_is_fast_and_the_rest_slow_however_it_is_allocated() {
    let program = build("parts", "kinds");
    if !emulation_works(&program) {
        return;
    }
    for words in ["malloc", "calloc", "memalign", "map"] {
        assert_eq!(emulated(&program, words), (4, 12), "{words}");
    }
    // What the allocator discards of the first array within the second is gone.
    let (fast, slow) = emulated(&program, "malloc free malloc free calloc");
    assert_eq!((fast, slow), (4, 12));
    assert_eq!(emulated(&program, "map unmap map"), (4, 12));
}

#[test]
fn a_resized_array_keeps_its_parts_and_small_blocks_have_none() {
    let program = build("parts", "resized");
    if !emulation_works(&program) {
        return;
    }
    let (fast, slow) = emulated(&program, "malloc realloc");
    // The former place of the array may be resident still.
    assert!((4..=8).contains(&fast) && slow >= 28, "{fast} {slow}");
    assert_eq!(emulated(&program, "small").0, 0);
    assert_eq!(emulated(&program, "malloc small").0, 4);
}

#[test]
fn a_forked_child_places_parts_too() {
    let program = build("parts", "fork");
    if !emulation_works(&program) {
        return;
    }
    let run = run(&program, &Setup::emulated(64), "malloc fork malloc");
    run.printed();
    let mut mib = run.mib();
    mib.sort_unstable();
    assert_eq!(mib, [(4, 12), (8, 24)]);
}

#[test]
fn parts_without_room_are_slow() {
    let program = build("parts", "room");
    if !emulation_works(&program) {
        return;
    }
    let run = run(&program, &Setup::emulated(6), "malloc malloc");
    run.printed();
    assert_eq!(run.mib(), [(6, 26)]);
}

#[test]
fn contents_stay_whole_in_a_storm_of_sizes() {
    let program = build("parts", "storm");
    let mut setups = vec![Setup::nodes(64), Setup::nodes(u64::MAX)];
    if emulation_works(&program) {
        setups.push(Setup::emulated(16));
    }
    for setup in &mut setups {
        // Blocks of all sizes have parts.
        setup.split.parts = 2;
        setup.parts = vec![part(0, 1, 0), part(1, 2, 1)];
        setup.parts[0].start = 64 << 10;
        let words = "malloc shrink storm handler malloc realloc free";
        let run = run(&program, setup, words);
        assert_eq!(run.lines().join(" "), words);
        assert_eq!(run.left_in_the_ledger(), 0);
    }
}

#[test]
fn what_a_site_allocates_first_is_fast_and_the_rest_slow() {
    let program = build("parts", "leading");
    if !emulation_works(&program) {
        return;
    }
    let run_with = |setup: Setup, words: &str| {
        let run = run(&program, &setup, words);
        run.printed();
        run.mib()[0]
    };
    let setup = || Setup::emulated(64).leading(6);
    let (fast, slow) = run_with(setup(), "small small");
    // The allocator takes chunks that it does not use to their ends.
    assert!((4..=6).contains(&fast) && slow >= 10, "{fast} {slow}");
    // The second 8 MiB take the place of the first.
    let (fast, _) = run_with(setup(), "malloc free malloc");
    assert!((4..=6).contains(&fast), "{fast}");
    let (fast, slow) = run_with(Setup::emulated(4).leading(6), "small small");
    assert!(fast == 4 && slow >= 12, "no more room: {fast} {slow}");
    assert_eq!(run_with(setup(), "map"), (0, 16), "a mapping is no heap");
    run_with(setup(), "malloc shrink storm malloc realloc free");
}

/// The policies of the arrays after each word `print`.
fn on_nodes(test: &str, setup: &Setup, words: &str) -> Vec<String> {
    let program = build("limited", test);
    let run = run(&program, setup, words);
    assert_eq!(run.left_in_the_ledger(), 0);
    run.lines()
}

fn placed(fast: u32, slow: u32) -> String {
    match fast {
        0 => format!("{SLOW}={slow}"),
        _ => format!("{FAST}={fast} {SLOW}={slow}"),
    }
}

#[test]
fn parts_have_the_policy_of_their_tier() {
    let unlimited = Setup::nodes(u64::MAX);
    let words = "malloc:16 print malloc:6 print free print malloc:16 print";
    let lines = on_nodes("policy", &unlimited, words);
    let expected = [placed(4, 12), placed(6, 16), placed(2, 4), placed(6, 16)];
    assert_eq!(lines, expected);
    let lines = on_nodes("map-policy", &unlimited, "map:16 print unmap map:16 print");
    assert_eq!(lines, [placed(4, 12), placed(4, 12)]);
}

#[test]
fn parts_take_no_more_than_the_limit_and_give_it_back() {
    for kind in ["malloc", "map"] {
        let release = if kind == "map" { "unmap" } else { "free" };
        let words = format!("{kind}:16 {kind}:16 print {release} print {kind}:16 print");
        let lines = on_nodes(&format!("limit-{kind}"), &Setup::nodes(6 + HEAP), &words);
        // The second array has two of its four: the third gets the four of the first.
        let expected = [placed(6, 26), placed(2, 14), placed(6, 26)];
        assert_eq!(lines, expected, "{kind}");
    }
}

#[test]
fn a_child_gives_back_only_the_parts_that_it_made() {
    let words = "malloc:16 fork free malloc:16 print end malloc:16 print";
    let lines = on_nodes("child", &Setup::nodes(6 + HEAP), words);
    // While it runs, its parent's part is counted; afterwards the parent has two left.
    assert_eq!(lines, [placed(2, 14), placed(6, 26)]);
}

#[test]
fn an_unsound_split_turns_the_runtime_off() {
    let program = build("parts", "unsound");
    let sound = Setup {
        sites: vec![5],
        ..Setup::nodes(u64::MAX)
    };
    let mut wrong = vec![sound.clone(); 6];
    wrong[0].split.first_part = 1;
    wrong[1].split.tier = 2;
    wrong[2].parts[0].tier = 2;
    wrong[3].parts[0].end = wrong[3].parts[0].start;
    wrong[4].parts[0].start = 100;
    wrong[5].leading = Some(LeadingRecord {
        first_tier: 2,
        later_tier: 1,
        bytes: MIB,
    });
    assert!(Run::of(&program, &sound, "malloc").output.stderr.is_empty());
    let mut files: Vec<_> = wrong.iter().map(Setup::bytes).collect();
    let mut no_such_split = sound.bytes();
    let entries = size_of::<ConfigHeader>() + size_of_val(&sound.tiers);
    let tiers = (0..sound.entries().len()).map(|slot| entries + slot * size_of::<PlanEntry>() + 8);
    for at in tiers.filter(|at| word(&sound.bytes(), at - 8) == 5) {
        no_such_split[at..at + 4].copy_from_slice(&(SPLIT | 1).to_ne_bytes());
    }
    files.push(no_such_split);
    for file in files {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("configuration"), file).expect("room");
        let output = Command::new(&program)
            .arg("malloc")
            .env("LD_PRELOAD", library())
            .env(env::CONFIG, directory.path().join("configuration"))
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(output.status.success());
    }
}
