//! Serves the clients of the daemon's sockets: several at once, each for a bounded time, and a bounded number of them.
//!
//! A limit for each read is not enough: a client that sends a byte each half second would stay forever. So a client has
//! one *deadline* for its whole request, however many reads that takes. With too many clients the one that has waited
//! longest is closed: one that sends its request at once, as a Prometheus does, is answered before others could
//! displace it.
//!
//! No HTTP library does this for a daemon with threads of its own. `tiny_http` 0.12, the smallest, reads a request
//! without any time limit, and starts as many threads as there are clients; libraries with both limits need an async
//! executor. The request here is one line of text.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most clients at a time.
pub(super) const CLIENTS_AT_MOST: usize = 16;

/// The pause after a client could not be accepted, for example with too many open files.
const PAUSE: Duration = Duration::from_secs(1);

/// A connection with a client.
pub(super) trait Connection: Send + Sized + 'static {
    /// A second handle of the same connection.
    fn twin(&self) -> io::Result<Self>;
    /// Ends the connection for every thread that uses it.
    fn close(&self);
    /// Sets the time limit of one read or write.
    fn set_timeout(&self, time: Duration) -> io::Result<()>;
    fn read_some(&self, bytes: &mut [u8]) -> io::Result<usize>;
    fn write_some(&self, bytes: &[u8]) -> io::Result<usize>;
}

macro_rules! connection {
    ($stream:ty) => {
        impl Connection for $stream {
            fn twin(&self) -> io::Result<Self> {
                self.try_clone()
            }

            fn close(&self) {
                // The client may have closed it already.
                let _ = self.shutdown(Shutdown::Both);
            }

            fn set_timeout(&self, time: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(time))?;
                self.set_write_timeout(Some(time))
            }

            fn read_some(&self, bytes: &mut [u8]) -> io::Result<usize> {
                Read::read(&mut &*self, bytes)
            }

            fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
                Write::write(&mut &*self, bytes)
            }
        }
    };
}
connection!(TcpStream);
connection!(UnixStream);

/// A client with a deadline: reads and writes together take no longer.
pub(super) struct Timed<'a, C> {
    client: &'a C,
    end: Instant,
}

impl<'a, C: Connection> Timed<'a, C> {
    pub(super) fn new(client: &'a C, time: Duration) -> Self {
        let end = Instant::now() + time;
        Self { client, end }
    }

    fn wait(&self) -> io::Result<()> {
        match self.end.checked_duration_since(Instant::now()) {
            Some(left) if left > Duration::ZERO => self.client.set_timeout(left),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl<C: Connection> Read for Timed<'_, C> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        self.client.read_some(bytes)
    }
}

impl<C: Connection> Write for Timed<'_, C> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait()?;
        self.client.write_some(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The current clients, the one that has waited longest first.
struct Clients<C>(Mutex<VecDeque<(u64, C)>>);

/// A client with an open request. It is removed when this is dropped.
pub(super) struct Asking<C: Connection> {
    pub(super) client: C,
    number: u64,
    clients: Arc<Clients<C>>,
}

impl<C: Connection> Clients<C> {
    fn admit(self: &Arc<Self>, client: C, number: u64) -> io::Result<Asking<C>> {
        let twin = client.twin()?;
        let mut asking = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if asking.len() >= CLIENTS_AT_MOST
            && let Some((_, longest)) = asking.pop_front()
        {
            longest.close();
        }
        asking.push_back((number, twin));
        Ok(Asking {
            client,
            number,
            clients: Arc::clone(self),
        })
    }
}

impl<C: Connection> Drop for Asking<C> {
    fn drop(&mut self) {
        let asking = self.clients.0.lock();
        let mut asking = asking.unwrap_or_else(PoisonError::into_inner);
        asking.retain(|(number, _)| *number != self.number);
    }
}

/// Answers each client in a thread of its own.
pub(super) fn accept<C: Connection>(
    incoming: impl Iterator<Item = io::Result<C>>,
    answer: impl Fn(Asking<C>) -> io::Result<()> + Send + Sync + 'static,
) {
    let clients = Arc::new(Clients(Mutex::new(VecDeque::new())));
    let answer = Arc::new(answer);
    for (number, client) in (0..).zip(incoming) {
        let admitted = client.and_then(|client| clients.admit(client, number));
        let Ok(asking) = admitted else {
            // An immediate retry would waste processor time.
            std::thread::sleep(PAUSE);
            continue;
        };
        let answer = Arc::clone(&answer);
        let serve = move || {
            // A client that disconnects is no failure.
            let _ = answer(asking);
        };
        // Without a thread the client is dropped, and connects again.
        let _ = std::thread::Builder::new().spawn(serve);
    }
}
