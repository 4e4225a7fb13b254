//! `KnownRoom` caches the free room of swap, less the bytes paged out since, for 20 ms, or until less is left than the caller wants: a
//! probe pages out a few pages only, and must not query the kernel each time.

use isotherm_model::units::{Bytes, Nanos};

use super::system::SwapSystem;

/// Time after which the cached room is too old, because other programs use swap, too.
const LOOK: Nanos = Nanos(20_000_000);

/// The room at the last query, less the bytes paged out since.
#[derive(Debug, Default)]
pub(super) struct KnownRoom {
    left: Bytes,
    /// True if bytes were paged out since. Pages that can be compressed leave more room than was assumed.
    is_used: bool,
    due_ns: u64,
}

impl KnownRoom {
    /// Bytes that may be paged out now; queries the kernel where fewer than `wanted` are known.
    pub(super) fn bytes(&mut self, system: &mut impl SwapSystem, wanted: Bytes) -> Bytes {
        let now_ns = system.now_ns();
        if now_ns >= self.due_ns || (self.is_used && self.left < wanted) {
            self.left = system.swap_room();
            self.is_used = false;
            self.due_ns = now_ns.saturating_add(LOOK.0);
        }
        self.left
    }

    /// Records bytes that are paged out.
    pub(super) fn take(&mut self, bytes: Bytes) {
        self.left = self.left.saturating_sub(bytes);
        self.is_used = true;
    }
}

#[cfg(test)]
mod tests {
    use isotherm_model::units::Bytes;

    use super::KnownRoom;
    use crate::movement::page_out::test_swap::SwapMachine;
    use crate::movement::system::PAGE_BYTES;

    #[test]
    fn room_is_looked_up_when_it_is_used_up_and_not_again_while_swap_is_full() {
        let page = Bytes(PAGE_BYTES);
        let mut machine = SwapMachine::new(&[]);
        machine.room = 2;
        let mut system = &mut machine;
        let mut room = KnownRoom::default();
        assert_eq!(room.bytes(&mut system, page), Bytes(2 * PAGE_BYTES));
        room.take(page);
        assert_eq!(room.bytes(&mut system, page), page, "as it is known");
        room.take(page);
        system.room = 0;
        for _ in 0..3 {
            assert_eq!(room.bytes(&mut system, page), Bytes::ZERO);
        }
        assert_eq!(machine.looks, 2);
    }
}
