//! [`Account`] writes the counters of an emulation, its state, and the accesses to pages that it observes to the session file. Without a
//! session file the counters are in the process's own memory, and the rest is not written.

use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::session::{COUNTERS, OffReason, SessionCounter, SessionHeader};

use crate::tables::SessionTables;

/// Counters of a process without a session file.
static UNPUBLISHED: [AtomicU64; COUNTERS] = [const { AtomicU64::new(0) }; COUNTERS];

/// The counters and the ring of touches of a session, if there is one.
#[derive(Clone, Copy)]
pub(crate) struct Account(pub(crate) Option<SessionTables>);

impl Account {
    fn header(&self) -> Option<&'static SessionHeader> {
        self.0.map(|tables| tables.header)
    }

    fn counter(&self, counter: SessionCounter) -> &'static AtomicU64 {
        let header = self.header();
        let counters = header.map_or(&UNPUBLISHED, |header| &header.counters);
        &counters[counter as usize]
    }

    pub(crate) fn add(&self, counter: SessionCounter, count: u64) {
        self.counter(counter).fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, counter: SessionCounter, value: u64) {
        self.counter(counter).store(value, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn get(&self, counter: SessionCounter) -> u64 {
        self.counter(counter).load(Ordering::Relaxed)
    }

    /// Publishes where the content of trapped pages is.
    pub(crate) fn set_shadow_offset(&self, offset: usize) {
        if let Some(header) = self.header() {
            header.shadow_offset.store(offset as u64, Ordering::Release);
        }
    }

    /// Publishes how much fast memory the pool can have.
    pub(crate) fn set_fast_bytes(&self, bytes: u64) {
        if let Some(header) = self.header() {
            header.pages.fast_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Publishes in the session that the runtime or a part of it is off, and why.
    pub(crate) fn gave_up(&self, reason: OffReason) {
        if let Some(tables) = self.0 {
            tables.publish_off(reason);
        }
    }

    /// Records an access to the page at `address`.
    pub(crate) fn touch(&self, address: usize, now_ns: u64) {
        let Some(SessionTables {
            header, touches, ..
        }) = self.0
        else {
            return;
        };
        let slots = touches.len() as u64;
        if slots == 0 {
            return;
        }
        let ring = &header.touches;
        let written = ring.written.load(Ordering::Relaxed);
        let record = &touches[(written % slots) as usize];
        record.address.store(address as u64, Ordering::Relaxed);
        record.time_ns.store(now_ns, Ordering::Relaxed);
        ring.written.store(written + 1, Ordering::Release);
        if written.saturating_sub(ring.read.load(Ordering::Relaxed)) >= slots {
            self.add(SessionCounter::TouchesLost, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Account;
    use crate::emulation::tests::session_tables;
    use core::sync::atomic::Ordering;
    use isotherm_abi::session::{OffReason, SessionState};

    /// The command reads the state first; the reason alone would mean nothing.
    #[test]
    fn a_service_that_gave_up_is_off_in_the_session() {
        let tables = session_tables(0);
        let header = tables.header;
        Account(Some(tables)).gave_up(OffReason::NoUserfaultfd);
        assert_eq!(
            header.state.load(Ordering::Relaxed),
            SessionState::Off as u32
        );
        let reason = header.off_reason.load(Ordering::Relaxed);
        assert_eq!(reason, OffReason::NoUserfaultfd as u32);
    }
}
