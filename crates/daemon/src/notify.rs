//! [`Notify`] reports the state of the daemon to systemd: `sd_notify(3)` without its library, one datagram a message.
//!
//! Written by hand: the crate `sd-notify` (0.5) would save 25 lines, but treats the name of an abstract socket (`@`), on which managers of
//! containers listen, as a path.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket of systemd, if there is one.
#[derive(Debug)]
pub(crate) struct Notify(Option<(UnixDatagram, SocketAddr)>);

impl Notify {
    /// Reads `NOTIFY_SOCKET`; messages are dropped if it is not set or not valid.
    pub(crate) fn from_environment() -> Self {
        Self(std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let name = name.as_bytes();
            let address = match name.strip_prefix(b"@") {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)),
            };
            Some((UnixDatagram::unbound().ok()?, address.ok()?))
        }))
    }

    /// Sends a message such as `READY=1`. A missing receiver is no failure.
    pub(crate) fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.0 {
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Notify;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    #[test]
    fn a_message_arrives_whole_and_a_deaf_socket_does_no_harm() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("notify");
        let listener = UnixDatagram::bind(&path).expect("binds");
        let address = SocketAddr::from_pathname(&path).expect("an address");
        let notify = Notify(Some((UnixDatagram::unbound().expect("a socket"), address)));
        notify.send("READY=1\nSTATUS=well");
        let mut bytes = [0; 64];
        let length = listener.recv(&mut bytes).expect("receives");
        assert_eq!(&bytes[..length], b"READY=1\nSTATUS=well");
        drop(listener);
        notify.send("STOPPING=1");
        Notify(None).send("READY=1");
    }
}
