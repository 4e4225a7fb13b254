//! Tests the preloaded library on a program that works on trapped memory in every way that could lose a page: the
//! program checks every byte itself, and its output must be the same as alone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use isotherm_abi::config::{
    ConfigHeader, NODE_WORDS, PageTrapConfig, RuntimeMode, TierRecord, TierRecordKind,
};
use isotherm_abi::env;
use isotherm_abi::session::{SessionCounter, SessionHeader};

const FAST: u32 = 0;
const SLOW: u32 = 1;

const PERIOD_NS: u64 = 1_000_000;
const ACCESS_NS: u64 = 10_000;
const HOT_NS: u64 = 1_000;
const MIGRATE_NS: u64 = 1_000;

/// The library under test, which cargo builds beside the test programs.
fn library() -> PathBuf {
    let this = std::env::current_exe().expect("path of this test");
    let directory = this.parent().expect("directory of this test");
    [directory, directory.parent().expect("build directory")]
        .into_iter()
        .map(|directory| directory.join("libisotherm.so"))
        .find(|path| path.exists())
        .expect("libisotherm.so beside the tests")
}

/// A directory of its own for one test, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("isotherm-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("session")).expect("temporary directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles the program; `None`, with the reason printed, where there is no C compiler.
fn compile(directory: &Directory) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/trapped.c");
    let program = directory.0.join("trapped");
    let compiler = Command::new("cc")
        .args(["-O1", "-pthread", "-o"])
        .args([&program, &source])
        .output();
    match compiler {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            isotherm_skip::skip!("no C compiler: {error}");
            None
        }
    }
}

/// The bytes of a configuration for the emulated pair, field by field as `abi` lays them out.
fn configuration(
    mode: RuntimeMode,
    default_tier: u32,
    fast_bytes: u64,
    trapping: PageTrapConfig,
) -> Vec<u8> {
    let tiers_offset = size_of::<ConfigHeader>();
    let end = tiers_offset + 2 * size_of::<TierRecord>();
    let header = ConfigHeader::new(mode);
    let mut file = header.magic.to_vec();
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let words = [
        pair(header.version, header.mode),
        end as u64,
        pair(header.depth, default_tier),
        header.own_arena_bytes,
        header.mapping_bytes,
        header.pool_bytes,
        pair(2, 0),
        tiers_offset as u64,
        end as u64,
        pair(0, header.mover),
        end as u64,
        PERIOD_NS,
        ACCESS_NS,
        HOT_NS,
        MIGRATE_NS,
        0,
        0,
        0,
        trapping.pages,
        trapping.period_ns,
        trapping.seed,
        u64::from(header.access_period),
        pair(0, header.static_tier),
        end as u64,
        0,
        end as u64,
        end as u64,
        end as u64,
        0,
    ];
    for word in words {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (kind, capacity_bytes) in [
        (TierRecordKind::EmulatedFast, fast_bytes),
        (TierRecordKind::EmulatedSlow, u64::MAX),
    ] {
        file.extend_from_slice(&pair(kind as u32, 1).to_le_bytes());
        file.extend_from_slice(&capacity_bytes.to_le_bytes());
        file.extend_from_slice(&[0; NODE_WORDS * 8]);
    }
    assert_eq!(file.len(), end, "the layout of `abi` has changed");
    file
}

fn run(program: &Path, variables: &[(&str, OsString)]) -> Output {
    Command::new(program)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .output()
        .expect("the program starts")
}

/// The highest value of a counter in any process of the run. Process numbers wrap around, so they do not
/// identify the program's own session file.
fn counter(directory: &Directory, counter: SessionCounter) -> Option<u64> {
    let sessions = std::fs::read_dir(directory.0.join("session")).expect("session directory");
    let at = core::mem::offset_of!(SessionHeader, counters) + counter as usize * 8;
    let value = |entry: std::io::Result<std::fs::DirEntry>| {
        let mut bytes = [0; 8];
        let file = std::fs::File::open(entry.ok()?.path()).ok()?;
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, at as u64).ok()?;
        Some(u64::from_ne_bytes(bytes))
    };
    sessions.filter_map(value).max()
}

/// Runs the program alone and under this configuration, and compares.
fn compare(
    name: &str,
    mode: RuntimeMode,
    default_tier: u32,
    fast_bytes: u64,
    trapping: PageTrapConfig,
) {
    let directory = Directory::new(name);
    let Some(program) = compile(&directory) else {
        return;
    };
    let path = directory.0.join("configuration");
    let bytes = configuration(mode, default_tier, fast_bytes, trapping);
    std::fs::write(&path, bytes).expect("configuration");
    let alone = run(&program, &[]);
    assert!(alone.status.success(), "{alone:?}");
    let guided = run(
        &program,
        &[
            ("LD_PRELOAD", library().into()),
            (env::CONFIG, path.into()),
            (env::SESSION, directory.0.join("session").into()),
        ],
    );
    assert_eq!(guided.status, alone.status, "{guided:?}");
    assert_eq!(
        String::from_utf8_lossy(&guided.stdout),
        String::from_utf8_lossy(&alone.stdout)
    );
    let touches = counter(&directory, SessionCounter::FirstTouches);
    if touches == Some(0) {
        println!("not trapped: {}", String::from_utf8_lossy(&guided.stderr));
        assert!(!guided.stderr.is_empty(), "an untrapped run says why");
    } else {
        assert_eq!(String::from_utf8_lossy(&guided.stderr), "");
        assert!(counter(&directory, SessionCounter::FastBytes) <= Some(fast_bytes));
    }
}

#[test]
fn nothing_is_lost_in_a_guided_run_with_all_data_in_the_slow_tier() {
    compare(
        "all-slow",
        RuntimeMode::Guided,
        SLOW,
        0,
        PageTrapConfig::default(),
    );
}

#[test]
fn nothing_is_lost_in_a_profile_run_with_a_small_fast_tier_and_a_sample() {
    let trapping = PageTrapConfig {
        pages: 64,
        period_ns: 2_000_000,
        seed: 7,
    };
    compare("sampled", RuntimeMode::Profile, FAST, 4 << 20, trapping);
}

#[test]
fn nothing_is_lost_in_an_online_run() {
    compare(
        "online",
        RuntimeMode::Online,
        FAST,
        8 << 20,
        PageTrapConfig::default(),
    );
}
