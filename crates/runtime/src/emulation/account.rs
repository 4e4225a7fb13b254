//! [`Account`] writes the counters of an emulation, its state, and the accesses to pages that it observes to the session file. Without a
//! session file the counters are in the process's own memory, and the rest is not written.

use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::session::{
    COUNTERS, OffReason, SessionCounter, SessionHeader, SessionState, TouchRecord,
};

use crate::tables::SessionTables;

/// Counters of a process without a session file.
static UNPUBLISHED: [AtomicU64; COUNTERS] = [const { AtomicU64::new(0) }; COUNTERS];

/// The counters and the ring of touches of a session, if there is one.
#[derive(Clone, Copy)]
pub(crate) struct Account {
    header: Option<&'static SessionHeader>,
    touches: &'static [TouchRecord],
}

impl Account {
    pub(crate) const fn new(
        header: Option<&'static SessionHeader>,
        touches: &'static [TouchRecord],
    ) -> Self {
        Self { header, touches }
    }

    /// Where a session's numbers go, or those of a process without one.
    pub(crate) fn of(tables: Option<SessionTables>) -> Self {
        tables.map_or(Self::new(None, &[]), |tables| {
            Self::new(Some(tables.header), tables.touches)
        })
    }

    fn counter(&self, counter: SessionCounter) -> &AtomicU64 {
        let counters = self.header.map_or(&UNPUBLISHED, |header| &header.counters);
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
        if let Some(header) = self.header {
            header.shadow_offset.store(offset as u64, Ordering::Release);
        }
    }

    /// Publishes how much fast memory the pool can have.
    pub(crate) fn set_fast_bytes(&self, bytes: u64) {
        if let Some(header) = self.header {
            header.pages.fast_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Publishes in the session that the runtime or a part of it is off, and why.
    pub(crate) fn gave_up(&self, reason: OffReason) {
        if let Some(header) = self.header {
            header.off_reason.store(reason as u32, Ordering::Relaxed);
            header
                .state
                .store(SessionState::Off as u32, Ordering::Release);
        }
    }

    /// Records an access to the page at `address`.
    pub(crate) fn touch(&self, address: usize, now_ns: u64) {
        let Some(header) = self.header else { return };
        let slots = self.touches.len() as u64;
        if slots == 0 {
            return;
        }
        let ring = &header.touches;
        let written = ring.written.load(Ordering::Relaxed);
        let record = &self.touches[(written % slots) as usize];
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
    use core::sync::atomic::Ordering;
    use isotherm_abi::config::RuntimeMode;
    use isotherm_abi::session::{OffReason, SessionHeader, SessionLayout, SessionState};

    /// The command reads the state first; the reason alone would mean nothing.
    #[test]
    fn a_service_that_gave_up_is_off_in_the_session() {
        let header: &'static SessionHeader = Box::leak(Box::new(
            SessionLayout::for_pool(1 << 30).header(RuntimeMode::Online, 4),
        ));
        Account::new(Some(header), &[]).gave_up(OffReason::NoUserfaultfd);
        assert_eq!(
            header.state.load(Ordering::Relaxed),
            SessionState::Off as u32
        );
        let reason = header.off_reason.load(Ordering::Relaxed);
        assert_eq!(reason, OffReason::NoUserfaultfd as u32);
    }
}
