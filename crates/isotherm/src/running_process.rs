//! `RunningProcess` is the process that `isotherm record --pid` records: `find` reads its command line, the directory of its session files
//! where it has Isotherm's runtime, and whether its code is of 32 bits, or says in one sentence why the process cannot be recorded; nothing
//! of it is changed. `Stat` is the state and start time of any process.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use isotherm_model::batch::Process;
use isotherm_session::{SessionFile, parse_name, session_of};
use isotherm_sys::file_root::FileRoot;
use isotherm_sys::process::ProcessHandle;

/// `PF_KTHREAD` of the kernel, in the flags of a process: it is a thread of the kernel's own.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process that runs already.
#[derive(Debug)]
pub(crate) struct RunningProcess {
    /// Its number, and the image that it runs in its session; 0 without one.
    pub process: Process,
    /// Holds it, so that no later process of the same number is meant.
    pub handle: ProcessHandle,
    /// Where the files of its code are.
    pub root: FileRoot,
    /// Its command line: the program by a name or path that a shell finds, and its arguments.
    pub words: Vec<OsString>,
    /// Its session, where the runtime is in it.
    pub session: Option<RunningSession>,
    /// Whether its code is of 32 bits.
    pub is_32_bit: bool,
}

/// The session of a process that has the runtime.
#[derive(Clone, Debug)]
pub(crate) struct RunningSession {
    /// The directory of its files.
    pub directory: PathBuf,
    /// Callers in its calling contexts.
    pub depth: u32,
}

impl RunningProcess {
    /// Finds a process and examines it.
    ///
    /// # Errors
    /// One sentence: there is none, it is a thread, a thread of the kernel, has ended, or belongs to another user.
    pub(crate) fn find(pid: u32) -> Result<Self> {
        if pid == std::process::id() {
            bail!("--pid {pid}: is this command itself; name another process");
        }
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let handle = ProcessHandle::open(pid);
        let Some(stat) = Stat::read(&directory) else {
            bail!(
                "--pid {pid}: there is no such process, or this user may not see it; `ps -e` lists those that there are"
            );
        };
        let name = &stat.name;
        if let Some(leader) = leader(&directory).filter(|leader| *leader != pid) {
            bail!(
                "--pid {pid}: is a thread of process {leader} ({name}); all threads of a process are recorded together: --pid {leader}"
            );
        }
        if stat.flags & KERNEL_THREAD != 0 {
            bail!(
                "--pid {pid}: is a thread of the kernel ({name}), which has no memory of its own; name the process of a program"
            );
        }
        let Ok(handle) = handle else {
            bail!(
                "--pid {pid}: the process ({name}) cannot be watched; it has just ended, or the kernel is older than Linux 5.3"
            );
        };
        if matches!(stat.state, 'Z' | 'X') || handle.has_ended() {
            bail!(
                "--pid {pid}: the process ({name}) has ended and only waits for its parent; name one that runs"
            );
        }
        check_access(pid, &directory, name)?;
        let session = session(pid);
        Ok(Self {
            process: Process {
                pid,
                image: session.as_ref().map_or(0, |(_, process)| process.image),
            },
            handle,
            root: FileRoot::of_process(Path::new("/proc"), pid),
            words: words(&directory, name),
            session: session.map(|(session, _)| session),
            is_32_bit: is_32_bit(&directory),
        })
    }

    /// Its number and the name of its program.
    pub(crate) fn shown(&self) -> String {
        let program = self.words.first().map(Path::new);
        let program = program.and_then(Path::file_name).unwrap_or_default();
        format!("{} ({})", self.process.pid, program.display())
    }
}

/// Checks that this user may see the memory of a process.
fn check_access(pid: u32, directory: &Path, name: &str) -> Result<()> {
    let owner = fs::metadata(directory).map_or(0, |metadata| metadata.uid());
    let own = rustix::process::geteuid().as_raw();
    match fs::read(directory.join("maps")) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && owner != own && own != 0 => {
            bail!(
                "--pid {pid}: the process ({name}) belongs to user {owner}, and this is user {own}; run as that user or as root: \
             sudo isotherm record --pid {pid}"
            )
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied && own == 0 => bail!(
            "--pid {pid}: the process ({name}) may not be read, although this is root: CAP_SYS_PTRACE is missing, as in a container; run with \
             that capability, or outside"
        ),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => bail!(
            "--pid {pid}: the process ({name}) keeps its memory from other processes of its user, as programs that change their \
             privileges do; run as root: sudo isotherm record --pid {pid}"
        ),
        Err(error) => bail!(
            "--pid {pid}: what the process ({name}) has mapped cannot be read: {error}; it may have just ended"
        ),
        Ok(_) => Ok(()),
    }
}

/// The state of a process in its `stat`.
pub(crate) struct Stat {
    name: String,
    state: char,
    flags: u64,
    /// When it started, in clock ticks since the boot of the machine. An exec changes nothing of it.
    pub started: Option<u64>,
}

impl Stat {
    /// Reads the state of the process with this directory in `/proc`; `None` where it has ended.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let stat = fs::read(directory.join("stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    /// Reads `7 (name) S 1 7 7 0 -1 4194560 ...`: the name may hold spaces and parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (before, fields) = text.rsplit_once(") ")?;
        let (_, name) = before.split_once('(')?;
        let mut fields = fields.split_ascii_whitespace();
        Some(Self {
            name: name.to_owned(),
            state: fields.next()?.chars().next()?,
            flags: fields.nth(5)?.parse().ok()?,
            started: fields.nth(12).and_then(|field| field.parse().ok()),
        })
    }
}

/// The process of a thread.
fn leader(directory: &Path) -> Option<u32> {
    let status = fs::read_to_string(directory.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// The command line, with the path of the program in place of a name by which a shell does not find it.
fn words(directory: &Path, name: &str) -> Vec<OsString> {
    let line = fs::read(directory.join("cmdline")).unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    let mut words: Vec<OsString> = line
        .split(|byte| *byte == 0)
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    let program = fs::read_link(directory.join("exe")).map(PathBuf::into_os_string);
    let program = program.map(|path| without_deleted(&path).to_owned());
    words[0] = match program {
        // A program that looks at its name works by that only.
        Ok(_) if is_program(&words[0], directory) => words[0].clone(),
        Ok(path) => path,
        Err(_) if words[0].is_empty() => name.into(),
        Err(_) => words[0].clone(),
    };
    words
}

/// Whether a shell finds the program of a process by this name, wherever it is.
fn is_program(name: &OsStr, directory: &Path) -> bool {
    let number = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let Some(own) = number(&directory.join("exe")) else {
        return false;
    };
    let search = std::env::var_os("PATH").unwrap_or_default();
    let found = match name.as_bytes() {
        [] => None,
        [b'/', ..] => Some(PathBuf::from(name)),
        bytes if bytes.contains(&b'/') => None,
        _ => std::env::split_paths(&search)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file()),
    };
    found.is_some_and(|path| number(&path) == Some(own))
}

/// A path without what the kernel adds where the file was removed.
fn without_deleted(path: &OsStr) -> &OsStr {
    let bytes = path.as_bytes();
    OsStr::from_bytes(bytes.strip_suffix(b" (deleted)").unwrap_or(bytes))
}

/// The session of a process that has the runtime, and its image there.
fn session(pid: u32) -> Option<(RunningSession, Process)> {
    let path = session_of(Path::new("/proc"), pid)?;
    let process = parse_name(path.file_name()?.to_str()?)?;
    let file = SessionFile::open(&path).ok()?;
    let session = RunningSession {
        directory: path.parent()?.to_owned(),
        depth: file.header().depth,
    };
    Some((session, process))
}

/// Whether the program is of 32 bits: the byte of its class says so. One that may not be read counts as one of 64.
fn is_32_bit(directory: &Path) -> bool {
    let mut head = [0; 5];
    let read =
        fs::File::open(directory.join("exe")).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == [0x7f, b'E', b'L', b'F', 1]
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::{RunningProcess, Stat, is_32_bit, words};

    fn refusal(pid: u32) -> String {
        RunningProcess::find(pid).unwrap_err().to_string()
    }

    /// Waits until a new process has its command line, which the kernel sets last.
    fn wait_for_words(pid: u32) {
        let path = Path::new("/proc").join(pid.to_string()).join("cmdline");
        while std::fs::read(&path).unwrap().is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_process_has_the_path_of_its_program_and_its_arguments() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        wait_for_words(child.id());
        let found = RunningProcess::find(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        let found = found.unwrap();
        assert_eq!(found.words, ["sleep", "60"]);
        assert!(found.session.is_none() && !found.is_32_bit);
        assert_eq!(found.process.pid, child.id());
    }

    #[test]
    fn a_name_that_finds_another_program_or_none_is_replaced_by_the_path() {
        use std::os::unix::process::CommandExt;
        let mut child = Command::new("sleep")
            .arg0("true")
            .arg("60")
            .spawn()
            .unwrap();
        wait_for_words(child.id());
        let found = RunningProcess::find(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        let words = found.unwrap().words;
        let program = Path::new(&words[0]);
        assert!(
            program.is_absolute() && program.ends_with("sleep"),
            "{program:?}"
        );
    }

    #[test]
    fn what_cannot_be_recorded_is_refused_with_the_reason() {
        assert!(refusal(u32::MAX).contains("no such process"));
        assert!(refusal(std::process::id()).contains("this command itself"));
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get());
        let mut child = Command::new("true").spawn().unwrap();
        let ended = |child: u32| Stat::read(&Path::new("/proc").join(child.to_string()));
        while ended(child.id()).is_some_and(|stat| stat.state != 'Z') {
            std::thread::yield_now();
        }
        assert!(
            refusal(child.id()).contains("has ended"),
            "{}",
            refusal(child.id())
        );
        child.wait().unwrap();
        drop(thread.join());
        // The thread that starts the kernel's others, where this process can see it.
        if Stat::read(Path::new("/proc/2")).is_some_and(|stat| stat.name == "kthreadd") {
            assert!(
                refusal(2).contains("thread of the kernel"),
                "{}",
                refusal(2)
            );
        }
    }

    #[test]
    fn a_thread_is_refused_with_its_process() {
        let (told, waits) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            told.send(own).unwrap();
            assert!(ends.recv().is_err(), "nothing is sent");
        });
        let said = refusal(waits.recv().unwrap());
        drop(end);
        thread.join().unwrap();
        let own = format!("--pid {}", std::process::id());
        assert!(
            said.contains("is a thread of process") && said.ends_with(&own),
            "{said}"
        );
    }

    #[test]
    fn the_state_follows_a_name_that_holds_anything() {
        let stat = Stat::parse("7 (a (b) S 1) Z 1 7 7 0 -1 2129984 0").unwrap();
        assert_eq!((stat.name.as_str(), stat.state), ("a (b) S 1", 'Z'));
        assert_ne!(stat.flags & super::KERNEL_THREAD, 0);
        assert!(Stat::parse("7 (a").is_none());
    }

    #[test]
    fn a_program_of_32_bits_and_an_empty_command_line_are_read() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("exe"), b"\x7fELF\x01\x01").unwrap();
        assert!(is_32_bit(directory.path()));
        assert_eq!(words(directory.path(), "app"), ["app"]);
    }
}
