//! `kill_all` sends SIGKILL to each living process whose session file is in the directory of a run: the program and its descendants, as far
//! as they have the runtime. It ends a program of `isotherm colocate --run` that is no longer needed, and the descendants of a program that
//! ran into its time limit.

use std::path::Path;
use std::time::Duration;

use isotherm_session::{parse_name, session_of};
use isotherm_sys::process::ProcessHandle;

/// How often the processes are looked for: one that is killed may have created another just before.
const LOOKS: usize = 100;
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// Ends each process that has its session file in `directory` by SIGKILL, until there is none.
pub(crate) fn kill_all(directory: &Path) {
    for _ in 0..LOOKS {
        if kill(directory) == 0 {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Sends SIGKILL to the processes that there are now; returns how many received it.
fn kill(directory: &Path) -> usize {
    let mut killed = 0;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let Some(process) = entry.file_name().to_str().and_then(parse_name) else {
            continue;
        };
        // The number may belong to another process by now: the one that is held is asked for its file.
        let Ok(held) = ProcessHandle::open(process.pid) else {
            continue;
        };
        let own = session_of(Path::new("/proc"), process.pid);
        if own.is_some_and(|path| path.parent() == Some(directory)) {
            // It may have ended meanwhile.
            killed += usize::from(held.kill().is_ok());
        }
    }
    killed
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::kill;

    #[test]
    fn a_process_without_a_file_in_the_directory_lives() {
        let directory = tempfile::tempdir().unwrap();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let name = format!("{}.0", other.id());
        std::fs::write(directory.path().join(name), "").unwrap();
        assert_eq!(kill(directory.path()), 0);
        let ended = other.try_wait().unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(ended.is_none(), "{ended:?}");
    }
}
