//! The daemon's socket, both ends of it: [`listen`] answers clients with what the daemon's main loop has put into the [`StatusPublisher`]
//! (status, heat, maps), and [`ask`] and [`follow`] query a daemon for the commands. A client sends a word and a line feed, and receives
//! lines of JSON.
//!
//! `status`, `heat` and `maps` are answered with one line, `follow` with one line now and one an epoch, until either
//! side ends. A client that takes more than a second to send a request, or to read an answer, is closed, and their
//! number is limited (`clients`): no client of the socket can block the daemon.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isotherm_report::json_line::JsonLine;
use isotherm_report::watch_heat::{HeatHistory, HeatMap};
use isotherm_report::watch_maps::Maps;
use isotherm_report::watch_status::Status;
use parking_lot::{Condvar, Mutex};
use rustix::fs::{Mode, OFlags};

use crate::clients::{Asking, CLIENTS_AT_MOST, Timed, accept};

/// The time limit of a client for a request, and for an answer.
const DEADLINE: Duration = Duration::from_secs(1);

/// Longest request.
const QUESTION_AT_MOST: u64 = 64;

/// The newest status with a way to wait for the next, the accesses of the last epochs, and the placement
/// of memory.
#[derive(Debug, Default)]
pub struct StatusPublisher {
    heat: Mutex<HeatHistory>,
    maps: Mutex<Arc<Maps>>,
    newest: Mutex<(u64, Arc<Status>)>,
    changed: Condvar,
}

impl StatusPublisher {
    /// Publishes a status and wakes the threads that wait for it.
    pub fn put(&self, status: Status) {
        let mut newest = self.newest.lock();
        *newest = (newest.0 + 1, Arc::new(status));
        self.changed.notify_all();
    }

    /// Adds the accesses of an epoch.
    pub fn see(&self, take: impl FnOnce(&mut HeatHistory)) {
        take(&mut self.heat.lock());
    }

    /// The accesses of the last epochs.
    fn heat(&self) -> HeatMap {
        self.heat.lock().map()
    }

    /// Publishes the placement of memory after an epoch.
    pub fn put_maps(&self, maps: Maps) {
        *self.maps.lock() = Arc::new(maps);
    }

    /// The placement of memory after the last epoch.
    fn maps(&self) -> Arc<Maps> {
        Arc::clone(&self.maps.lock())
    }

    /// The newest status.
    pub fn get(&self) -> Arc<Status> {
        self.after(None).1
    }

    /// The first status past this number, and its own number.
    fn after(&self, seen: Option<u64>) -> (u64, Arc<Status>) {
        let mut newest = self.newest.lock();
        while seen == Some(newest.0) {
            self.changed.wait(&mut newest);
        }
        newest.clone()
    }
}

/// The file of an open socket; removed when this is dropped.
#[derive(Debug)]
pub struct Listening(PathBuf);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens and answers in threads of its own.
///
/// # Errors
/// The path is in use by a live daemon, is not a socket, or cannot be created.
pub fn listen(path: &Path, publisher: Arc<StatusPublisher>) -> Result<Listening> {
    let shown = path.display();
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)
            .with_context(|| format!("{}: cannot be made", directory.display()))?;
    }
    if let Ok(there) = fs::symlink_metadata(path) {
        if !there.file_type().is_socket() {
            bail!("{shown}: is there already and is no socket; name another path in serve.socket");
        }
        if UnixStream::connect(path).is_ok() {
            bail!(
                "{shown}: a daemon answers here already; stop it, or name another path in serve.socket"
            );
        }
        // Left behind by a killed daemon.
        fs::remove_file(path).with_context(|| format!("{shown}: cannot be removed"))?;
    }
    let listener = UnixListener::bind(path).with_context(|| format!("{shown}: cannot be made"))?;
    open_to_group(path).with_context(|| format!("{shown}: its rights cannot be set"))?;
    let followers = AtomicUsize::new(0);
    let answer = move |asking| serve(asking, &publisher, &followers);
    std::thread::Builder::new()
        .name("socket".to_owned())
        .spawn(move || accept(listener.incoming(), answer))
        .context("the thread of the socket cannot be started")?;
    Ok(Listening(path.to_owned()))
}

/// Gives access to the group. The name may now be a link to another file, whose mode must not change, so the
/// function changes the socket by its descriptor.
fn open_to_group(path: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = rustix::fs::open(path, flags, Mode::empty())?;
    let itself = format!("/proc/self/fd/{}", held.as_raw_fd());
    match fs::metadata(&itself)?.file_type().is_socket() {
        true => fs::set_permissions(itself, fs::Permissions::from_mode(0o660)),
        false => Err(io::Error::other("something else was put in its place")),
    }
}

fn serve(asking: Asking, publisher: &StatusPublisher, followers: &AtomicUsize) -> io::Result<()> {
    let mut question = String::new();
    let timed = Timed::new(&asking.client, DEADLINE);
    BufReader::new(timed.take(QUESTION_AT_MOST)).read_line(&mut question)?;
    let mut client = Timed::new(&asking.client, DEADLINE);
    match question.trim() {
        Status::REQUEST => writeln!(client, "{}", publisher.get().json_line()),
        HeatMap::REQUEST => writeln!(client, "{}", publisher.heat().json_line()),
        Maps::REQUEST => writeln!(client, "{}", publisher.maps().json_line()),
        "follow" => {
            let client = asking.client.try_clone()?;
            // Its request is complete; it no longer counts against the limit.
            drop(asking);
            let is_one_more = followers.fetch_add(1, Ordering::Relaxed) < CLIENTS_AT_MOST;
            let told = if is_one_more {
                tell(&client, publisher)
            } else {
                Ok(())
            };
            followers.fetch_sub(1, Ordering::Relaxed);
            told
        }
        other => {
            let error = serde_json::json!({ "error": format!("\"{other}\" is not a request; ask status, follow, heat or maps") });
            writeln!(client, "{error}")
        }
    }
}

/// Sends each status until the client ends.
fn tell(client: &OwnedFd, publisher: &StatusPublisher) -> io::Result<()> {
    let mut seen = None;
    loop {
        let (number, status) = publisher.after(seen);
        writeln!(Timed::new(client, DEADLINE), "{}", status.json_line())?;
        seen = Some(number);
    }
}

/// Queries a daemon once.
///
/// # Errors
/// No daemon answers there, or the answer is not valid.
pub fn ask<T: JsonLine>(path: &Path) -> Result<T> {
    let shown = path.display();
    let answer = answers(path, T::REQUEST)?.next();
    answer.with_context(|| format!("{shown}: the daemon closed without an answer; ask again"))?
}

/// Passes each status of a daemon to `take`, until the daemon ends or `take` returns false.
///
/// # Errors
/// As [`ask`].
pub fn follow(path: &Path, mut take: impl FnMut(Status) -> bool) -> Result<()> {
    for status in answers(path, "follow")? {
        if !take(status?) {
            break;
        }
    }
    Ok(())
}

fn answers<T: JsonLine>(
    path: &Path,
    request: &str,
) -> Result<impl Iterator<Item = Result<T>> + use<T>> {
    let path = path.to_owned();
    let client = UnixStream::connect(&path).with_context(|| {
        let shown = path.display();
        format!("{shown}: no daemon answers; start one by `isotherm daemon`, or name its socket with --socket")
    })?;
    writeln!(&client, "{request}")
        .with_context(|| format!("{}: cannot be asked", path.display()))?;
    Ok(BufReader::new(client).lines().map(move |line| {
        let shown = path.display();
        let line = line.with_context(|| format!("{shown}: the answer cannot be read"))?;
        T::from_json_line(&line).map_err(|error| anyhow::anyhow!("{shown}: {error}"))
    }))
}

#[cfg(test)]
mod tests {
    use super::{CLIENTS_AT_MOST, StatusPublisher, ask, follow, listen};
    use isotherm_model::batch::{Epoch, Process};
    use isotherm_model::units::{Bytes, Nanos};
    use isotherm_model::watch::{Unit, UnitHeat};
    use isotherm_report::json_line::JsonLine;
    use isotherm_report::watch_heat::HeatMap;
    use isotherm_report::watch_status::Status;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    fn status(epochs: u64) -> Status {
        Status {
            version: Status::VERSION,
            epochs,
            ..Status::default()
        }
    }

    #[test]
    fn status_is_one_answer_and_follow_is_one_an_epoch() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("run/socket");
        let publisher = Arc::new(StatusPublisher::default());
        publisher.put(status(1));
        let listening = listen(&path, Arc::clone(&publisher)).expect("listens");
        let mut seen = Vec::new();
        assert_eq!(ask::<Status>(&path).expect("an answer").epochs, 1);
        follow(&path, |status| {
            seen.push(status.epochs);
            publisher.put(super::tests::status(status.epochs + 1));
            seen.len() < 3
        })
        .expect("answers");
        assert_eq!(seen, [1, 2, 3]);
        let error = listen(&path, Arc::clone(&publisher)).expect_err("in use");
        assert!(
            error.to_string().contains("answers here already"),
            "{error}"
        );
        drop(listening);
        assert!(!path.exists());
    }

    #[test]
    fn heat_is_one_answer_with_all_that_was_seen() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let publisher = Arc::new(StatusPublisher::default());
        let _listening = listen(&path, Arc::clone(&publisher)).expect("listens");
        assert_eq!(ask::<HeatMap>(&path).expect("an answer").columns, []);
        let unit = UnitHeat {
            unit: Unit {
                process: Process { pid: 7, image: 0 },
                start: 4096,
            },
            resident: Bytes(4096),
            fast: Bytes(0),
            hits: [1, 2],
        };
        let name = [(unit.unit.process, "app")];
        publisher.see(|heat| heat.push(Epoch(3), Nanos(5), Bytes(4096), name, [unit]));
        let map = ask::<HeatMap>(&path).expect("an answer");
        assert_eq!((map.rows[0].pid, map.rows[0].name.as_str()), (7, "app"));
        assert_eq!(map.trace_samples, [[2]]);
    }

    #[test]
    fn nonsense_is_answered_with_what_can_be_asked_and_silence_is_let_go() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let publisher = Arc::new(StatusPublisher::default());
        publisher.put(status(1));
        let _listening = listen(&path, publisher).expect("listens");
        let mut client = UnixStream::connect(&path).expect("connects");
        client.write_all(b"please\n").expect("writes");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("reads");
        assert!(
            answer.contains("ask status, follow, heat or maps"),
            "{answer}"
        );
        // Each in the middle of its request; none blocks the next one.
        let slow = (0..2 * CLIENTS_AT_MOST).map(|_| {
            let mut client = UnixStream::connect(&path).expect("connects");
            client.write_all(b"sta").expect("writes");
            client
        });
        let slow: Vec<UnixStream> = slow.collect();
        ask::<Status>(&path).expect("an answer");
        drop(slow);
        let mut silent = UnixStream::connect(&path).expect("connects");
        answer.clear();
        silent
            .read_to_string(&mut answer)
            .expect("the daemon closes");
        assert_eq!(answer, "");
    }

    #[test]
    fn what_is_no_socket_is_not_removed_and_what_a_killed_daemon_left_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        std::fs::write(&path, "mine").expect("writes");
        let error = listen(&path, Arc::new(StatusPublisher::default())).expect_err("a file");
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("still there"), "mine");
        std::fs::remove_file(&path).expect("removes");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("binds"));
        assert!(path.exists());
        listen(&path, Arc::new(StatusPublisher::default())).expect("listens");
    }

    #[test]
    fn the_group_may_ask_and_the_rights_of_a_file_behind_a_link_stay() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let [path, file, link] = ["socket", "file", "link"].map(|name| directory.path().join(name));
        let _listening = listen(&path, Arc::new(StatusPublisher::default())).expect("listens");
        let mode = |path| {
            std::fs::metadata(path)
                .expect("is there")
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!(mode(&path), 0o660);
        std::fs::write(&file, "mine").expect("writes");
        let own = mode(&file);
        for target in [&file, &path] {
            std::os::unix::fs::symlink(target, &link).expect("links");
            super::open_to_group(&link).expect_err("a link");
            std::fs::remove_file(&link).expect("removes");
        }
        assert_eq!(mode(&file), own);
    }
}
