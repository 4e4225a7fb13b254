//! [`accept`] answers each connection of a listening socket (the daemon's own or that of the metrics) in a thread of its own, and closes
//! the oldest one above a limit on their number; [`Timed`] gives reads and writes a deadline. So no client can exhaust the daemon's threads
//! or file descriptors.
//!
//! A timeout of each read is not enough: a client that sends one byte each half second would keep its connection for
//! ever (the Slowloris attack). So all reads and writes of a request, or of an answer, have one *deadline* together.
//! Above the limit on their number the oldest connection is closed: a client that sends its request at once, as
//! Prometheus does, has its answer before that many newer ones connect. A client that requests the status of every epoch
//! (`follow`) stays connected and does not count here once its request is read; `socket` limits their number.
//!
//! ARCHITECTURE.md states why no HTTP library does this.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::time::Timespec;

/// Most open connections of one listening socket.
pub(super) const CLIENTS_AT_MOST: usize = 16;

/// The pause after a connection could not be accepted, for example because too many files are open.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A connection with a deadline: once it has passed, reads and writes fail with `TimedOut`.
pub(super) struct Timed<'a> {
    client: &'a OwnedFd,
    deadline: Instant,
}

impl<'a> Timed<'a> {
    pub(super) fn new(client: &'a OwnedFd, time: Duration) -> Self {
        let deadline = Instant::now() + time;
        Self { client, deadline }
    }

    /// Waits until the connection can be read from or written to, or the client has closed it.
    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(self.client, flags)], Some(&left))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.wait(PollFlags::IN)?;
        let (length, _) = recv(self.client, bytes, RecvFlags::DONTWAIT)?;
        Ok(length)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(PollFlags::OUT)?;
        // Non-blocking: the socket buffer may have space for a part of the bytes only, and a blocking send would wait
        // past the deadline for a client that does not read.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(send(self.client, bytes, flags)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The open connections, oldest first, each by its number and a duplicate of its descriptor.
struct Clients(Mutex<VecDeque<(u64, OwnedFd)>>);

/// A connection that counts against the limit until this value is dropped.
pub(super) struct Asking {
    pub(super) client: OwnedFd,
    number: u64,
    clients: Arc<Clients>,
}

impl Clients {
    fn admit(self: &Arc<Self>, client: OwnedFd, number: u64) -> io::Result<Asking> {
        let duplicate = client.try_clone()?;
        let mut open = self.0.lock();
        if open.len() >= CLIENTS_AT_MOST
            && let Some((_, oldest)) = open.pop_front()
        {
            // Reads and writes of the thread that serves it then fail. An error means that the client has closed it.
            let _ = shutdown(&oldest, Shutdown::Both);
        }
        open.push_back((number, duplicate));
        Ok(Asking {
            client,
            number,
            clients: Arc::clone(self),
        })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut open = self.clients.0.lock();
        open.retain(|(number, _)| *number != self.number);
    }
}

/// Calls `answer` for each connection, in a thread of its own. Returns only when `incoming` ends.
pub(super) fn accept(
    incoming: impl Iterator<Item = io::Result<impl Into<OwnedFd>>>,
    answer: impl Fn(Asking) -> io::Result<()> + Send + Sync + 'static,
) {
    let clients = Arc::new(Clients(Mutex::new(VecDeque::new())));
    let answer = Arc::new(answer);
    for (number, client) in (0..).zip(incoming) {
        let admitted = client.and_then(|client| clients.admit(client.into(), number));
        let Ok(asking) = admitted else {
            // An immediate retry would waste processor time.
            std::thread::sleep(RETRY_PAUSE);
            continue;
        };
        let answer = Arc::clone(&answer);
        let serve = move || {
            // A client that disconnects, or misses its deadline, is no error of the daemon.
            let _ = answer(asking);
        };
        // If no thread can be started, the connection is closed unanswered; the client may retry.
        let _ = std::thread::Builder::new().spawn(serve);
    }
}

#[cfg(test)]
mod tests {
    use super::Timed;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    const TIME: Duration = Duration::from_millis(200);

    #[test]
    fn a_client_that_neither_sends_nor_reads_is_let_go_at_its_deadline() {
        let (ours, _silent) = UnixStream::pair().expect("two ends");
        let ours = ours.into();
        let read = Timed::new(&ours, TIME).read(&mut [0]);
        let written = Timed::new(&ours, TIME).write_all(&[0; 8 << 20]);
        for error in [read.map(|_| ()), written] {
            let kind = error.expect_err("is too late").kind();
            assert_eq!(kind, std::io::ErrorKind::TimedOut);
        }
    }
}
