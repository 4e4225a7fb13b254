//! Tests that the preloaded library moves a program's arenas from inside, on request, while the program writes to
//! them, forks and discards pages: no data is lost, and each request is done. The tests play the observer; the
//! machine needs one node only, because pages that are already on the node are moved all the same.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use isotherm_abi::config::{ConfigHeader, Mover, NODE_WORDS, RuntimeMode, TierRecord};
use isotherm_abi::session::{
    ArenaRecord, CHUNK_FREE, CHUNK_MAPPING, MOVE_CHUNKS, MoveRequest, MoverState, SessionHeader,
};
use isotherm_abi::{CHUNK_BYTES, env};

/// The library under test, built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("libisotherm.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// Builds a program of `programs/`.
fn build(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.program"));
    let compiler = Command::new("cc")
        .args(["-O1", "-w", "-pthread", "-o"])
        .args([&program, &source])
        .output()
        .expect("cc starts");
    assert!(
        compiler.status.success(),
        "{}",
        String::from_utf8_lossy(&compiler.stderr)
    );
    program
}

/// A configuration of an online run on two tiers that are both node 0; they differ in their memory policy, so
/// that an address identifies its tier.
fn configuration(mover: Mover, policies: [u32; 2]) -> Vec<u8> {
    let tiers_offset = size_of::<ConfigHeader>();
    let end = tiers_offset + 2 * size_of::<TierRecord>();
    let header = ConfigHeader::new(RuntimeMode::Online);
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let words = [
        pair(header.version, header.mode),
        end as u64,
        pair(header.depth, 0),
        64 << 10,
        header.mapping_bytes,
        header.pool_bytes,
        pair(2, 0),
        tiers_offset as u64,
        end as u64,
        pair(0, mover as u32),
        end as u64,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        pair(0, header.static_tier),
        end as u64,
        0,
        end as u64,
        end as u64,
        end as u64,
        0,
    ];
    let mut file = header.magic.to_vec();
    let mut put = |word: u64| file.extend_from_slice(&word.to_ne_bytes());
    words.into_iter().for_each(&mut put);
    for policy in policies {
        put(pair(0, policy));
        put(u64::MAX);
        put(1);
        (1..NODE_WORDS).for_each(|_| put(0));
    }
    assert_eq!(file.len(), end, "the layout of `abi` has changed");
    file
}

/// A program that runs under the library, and its session file.
struct Run {
    child: Child,
    session: File,
    _folder: tempfile::TempDir,
}

impl Run {
    fn start(program: &Path, words: &[&str], configuration: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("configuration");
        std::fs::write(&file, configuration).expect("it is writable");
        let child = Command::new(program)
            .args(words)
            .env("LD_PRELOAD", library())
            .env(env::CONFIG, file)
            .env(env::SESSION, folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let path = folder.path().join(format!("{}.0", child.id()));
        let session = loop {
            let opened = File::options().read(true).write(true).open(&path);
            if let Ok(file) = opened
                && file.metadata().expect("its size").len() > 0
                && word(&file, offset_of!(SessionHeader, version)) != 0
            {
                break file;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        Self {
            child,
            session,
            _folder: folder,
        }
    }

    /// The program's output, after it has ended well.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {said}", output.status);
        println!("{said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn word(&self, at: usize) -> u32 {
        word(&self.session, at)
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        self.session
            .write_all_at(bytes, at as u64)
            .expect("a session file is writable");
    }

    /// The first chunk of the pool that an arena owns, with the arena's number; chunks are contiguous.
    fn first_chunk(&self) -> Option<(u64, u32)> {
        let table = long(&self.session, offset_of!(SessionHeader, chunks_offset));
        let owner = |chunk: u64| self.word((table + chunk * 4) as usize);
        let own = |owner: u32| ![CHUNK_FREE, CHUNK_MAPPING].contains(&owner) && owner > 4;
        (0..256)
            .find(|chunk| own(owner(*chunk)))
            .map(|chunk| (chunk, owner(chunk) - 1))
    }

    /// Requests a move of chunks to node 0; returns how many were moved. `None` where the program ended first.
    fn move_chunks(&mut self, first: u64) -> Option<u32> {
        let at = |field: usize| offset_of!(SessionHeader, moving) + field;
        let base = long(&self.session, offset_of!(SessionHeader, pool_base));
        let number = self.word(at(offset_of!(MoveRequest, asked))) + 1;
        self.put(
            at(offset_of!(MoveRequest, start)),
            &(base + first * CHUNK_BYTES).to_ne_bytes(),
        );
        self.put(
            at(offset_of!(MoveRequest, chunks)),
            &MOVE_CHUNKS.to_ne_bytes(),
        );
        self.put(
            at(offset_of!(MoveRequest, even_if_there)),
            &1_u32.to_ne_bytes(),
        );
        self.put(at(offset_of!(MoveRequest, asked)), &number.to_ne_bytes());
        while self.word(at(offset_of!(MoveRequest, answered))) != number {
            if self.child.try_wait().expect("it is ours").is_some() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let moved = long(&self.session, at(offset_of!(MoveRequest, moved)));
        Some(moved.count_ones())
    }

    /// The number of threads that copy beside the mover's thread.
    fn helpers(&self) -> usize {
        let named = |task: std::io::Result<std::fs::DirEntry>| {
            let name = std::fs::read(task.ok()?.path().join("comm")).ok()?;
            (name == b"isotherm-copy\n").then_some(())
        };
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        tasks.expect("proc").filter_map(named).count()
    }

    /// Waits until the mover's thread copies alone.
    fn wait_for_no_helpers(&self) {
        for _ in 0..20_000 {
            if self.helpers() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{} helpers are left", self.helpers());
    }

    /// Whether the mover runs; prints why not.
    fn moves(&self) -> bool {
        let at = offset_of!(SessionHeader, moving) + offset_of!(MoveRequest, state);
        let state = loop {
            match self.word(at) {
                0 => std::thread::sleep(Duration::from_millis(1)),
                state => break state,
            }
        };
        if state != MoverState::Running as u32 {
            isotherm_skip::skip!("this kernel has no mover (state {state} of MoverState)");
        }
        state == MoverState::Running as u32
    }
}

fn word(file: &File, at: usize) -> u32 {
    let mut bytes = [0; 4];
    let _ = file.read_exact_at(&mut bytes, at as u64);
    u32::from_ne_bytes(bytes)
}

fn long(file: &File, at: usize) -> u64 {
    let mut bytes = [0; 8];
    let _ = file.read_exact_at(&mut bytes, at as u64);
    u64::from_ne_bytes(bytes)
}

const PREFERRED: u32 = 1;
/// Moves that the test waits for.
const CHUNKS_AT_LEAST: u32 = 300;

#[test]
fn arenas_move_under_writers_forks_and_purges_and_nothing_is_lost() {
    let program = build("staged");
    let configuration = configuration(Mover::Staged, [PREFERRED; 2]);
    let mut run = Run::start(&program, &[], &configuration);
    if !run.moves() {
        run.end();
        return;
    }
    let (mut moved, mut asked) = (0, 0);
    while moved < CHUNKS_AT_LEAST && asked < 100 * CHUNKS_AT_LEAST {
        let first = run.first_chunk().map_or(0, |(chunk, _)| chunk);
        let chunks = run.move_chunks(first);
        moved += chunks.expect("the program ends when it is told to");
        asked += 1;
    }
    run.wait_for_no_helpers();
    let printed = run.end();
    println!("{moved} chunks moved in {asked} requests");
    let plain = Command::new(&program).stdin(Stdio::null()).output();
    let plain = plain.expect("the program starts").stdout;
    assert_eq!(printed, String::from_utf8_lossy(&plain));
    assert!(printed.starts_with("0 words, 0 zeroes and 0 children wrong"));
    assert!(moved >= CHUNKS_AT_LEAST, "{moved} chunks were moved");
}

/// The helpers of a test's program while it is asked to move: it may use the processors of the test, and the mover's
/// thread copies, too.
fn helpers_expected() -> usize {
    let threads = isotherm_sys::affinity::count_allowed_to(0).expect("affinity");
    threads.min(isotherm_sys::staged::UNIT_PIECES) - 1
}

/// The library's threads do not outlive the program's last one, and the program ends as without them; a call that
/// the kernel refuses a process of several threads is done.
#[test]
fn a_program_ends_as_without_the_library_while_threads_copy() {
    let program = build("ends_alone");
    for how in ["exit", "thread", "filter-whole", "unshare"] {
        let words = [how, "after input"];
        let mut plain = Command::new(&program);
        let plain = plain.args(words).stdin(Stdio::null()).output();
        let plain = plain.expect("the program starts");
        let mut run = Run::start(
            &program,
            &words,
            &configuration(Mover::Staged, [PREFERRED; 2]),
        );
        if !run.moves() {
            let _ = run.child.kill();
            return;
        }
        let (mut moved, mut helpers, mut asked) = (0, 0, 0);
        while moved == 0 || helpers != helpers_expected() {
            let first = run.first_chunk().map_or(0, |(chunk, _)| chunk);
            moved = run.move_chunks(first).expect("it waits for its input");
            helpers = run.helpers();
            asked += 1;
            assert!(asked < 10_000, "{moved} chunks moved by {helpers} helpers");
        }
        drop(run.child.stdin.take());
        let output = run.child.wait_with_output().expect("it ends");
        assert_eq!(output.status, plain.status, "{how}");
        assert_eq!(output.stdout, plain.stdout, "{how}");
    }
}

/// Pages of a chunk that are first touched after its site was given another tier belong there.
#[test]
fn chunks_that_a_site_has_follow_its_tier() {
    const BIND: u32 = 2;
    let program = build("placed");
    for mover in [Mover::Kernel, Mover::Staged] {
        let configuration = configuration(mover, [PREFERRED, BIND]);
        let mut run = Run::start(&program, &[], &configuration);
        let mut output = BufReader::new(run.child.stdout.take().expect("it is piped"));
        let mut before = String::new();
        output.read_line(&mut before).expect("it prints");
        if before != "1\n" {
            isotherm_skip::skip!("this kernel has no memory policies ({before})");
            run.end();
            return;
        }
        let (_, arena) = run.first_chunk().expect("the site has an arena");
        let arenas = long(&run.session, offset_of!(SessionHeader, arenas_offset)) as usize;
        let record = arenas + arena as usize * size_of::<ArenaRecord>();
        run.put(record + offset_of!(ArenaRecord, tier), &1_u32.to_ne_bytes());
        let input = run.child.stdin.as_mut().expect("it is piped");
        input.write_all(b"\n").expect("it reads");
        let mut after = String::new();
        output.read_to_string(&mut after).expect("it prints");
        run.end();
        assert_eq!(after, format!("{BIND}\n"), "{mover:?}");
    }
}
