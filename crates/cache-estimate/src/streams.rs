//! [`Streams`] finds out, from the samples of one thread, which of its instructions follow a stream of addresses and how fast.
//!
//! The hardware fetches ahead of a stream, so the stream waits for the memory's bandwidth, and the waiting falls on all instructions
//! of its loop; every other access waits for the latency itself. Successive samples of an instruction that follows a stream go in
//! one direction, as far apart as the memory delivers in the time between them. Where it goes to and fro, the directions differ.

/// Instructions that are remembered.
const SLOTS: usize = 32;

/// Samples of an instruction in one direction, one after another, that make a stream. Random accesses do so by accident in
/// one case of eight.
const STEADY: u8 = 3;

/// Limit of that count: an instruction that reached it still follows a stream after two samples that break off.
const STEADY_MOST: u8 = 3 * STEADY;

/// More bytes than a thread reads in a nanosecond.
const MOST_BYTES_PER_NS: u64 = 64;

/// Bytes a nanosecond from which on a stream is limited by the memory and not by the thread: one thread reads 5 to 15 from the
/// DRAM of the last ten years' machines.
const LIMITED_BYTES_PER_NS: u64 = 2;

/// Consecutive samples at about one rate that make a regular stream. Random accesses do so by accident in one case of twenty.
const REGULAR: u8 = 2;

/// Limit of that count, above [`REGULAR`] so that one irregular sample does not end a regular stream.
const REGULAR_MOST: u8 = 3;

/// What a sample of an instruction says of its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPattern {
    /// It goes to and fro, or is not known yet.
    Scattered,
    /// It follows a stream, slower than the memory could deliver it.
    Stream,
    /// It follows a stream as fast as the memory delivers it.
    LimitedStream,
}

impl AccessPattern {
    /// Whether a sample says that the thread waited for memory. One taken behind an access waited for it; one before its
    /// access waited for none, but in a stream that the memory limits, where the waiting falls on the whole loop.
    #[must_use]
    pub const fn waits(self, is_behind_access: bool) -> bool {
        is_behind_access || matches!(self, Self::LimitedStream)
    }
}

/// The last sample of an instruction.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Slot {
    instruction: u64,
    address: u64,
    /// The thread's work at the last sample, in nanoseconds.
    at_ns: u64,
    /// Bytes a nanosecond between the last two samples that went on; 0 of none.
    rate: f32,
    /// How often in turn the rate was about the same, at most [`REGULAR_MOST`].
    regular: u8,
    /// Samples in the direction `up`, one after another, less [`STEADY`] for each that broke off.
    steady: u8,
    up: bool,
}

impl Slot {
    /// The rate of the next sample, and how often in turn it was about the same.
    fn regular_at(&self, rate: f32) -> (f32, u8) {
        let is_same = rate < 2.0 * self.rate && self.rate < 2.0 * rate;
        let regular = match is_same {
            true => (self.regular + 1).min(REGULAR_MOST),
            false => 0,
        };
        (rate, regular)
    }

    /// The number of an instruction's slot.
    const fn of(instruction: u64) -> usize {
        (instruction ^ instruction >> 5) as usize % SLOTS
    }
}

/// The regular walk of an instruction through memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk {
    /// Bytes in a nanosecond of the thread's work.
    pub bytes_per_ns: f32,
    /// Whether it goes towards higher addresses.
    pub up: bool,
}

/// The sampled instructions of one thread. In memory of all zero bytes there is an empty table, so that a runtime can make one in
/// place.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Streams {
    slots: [Slot; SLOTS],
}

impl Streams {
    /// Notes a sample of an instruction, when the thread has worked for `now_ns` nanoseconds.
    pub fn note(&mut self, instruction: u64, address: u64, now_ns: u64) -> AccessPattern {
        let slot = &mut self.slots[Slot::of(instruction)];
        let (up, distance) = (address > slot.address, address.abs_diff(slot.address));
        let ns = now_ns.saturating_sub(slot.at_ns);
        let follows = slot.instruction == instruction
            && distance > 0
            && distance <= ns.saturating_mul(MOST_BYTES_PER_NS);
        // A stream that begins anew at the other end of its data is one still.
        let goes_on = follows && (up == slot.up || slot.steady == 0);
        let steady = match goes_on {
            true => (slot.steady + 1).min(STEADY_MOST),
            false => slot.steady.saturating_sub(STEADY),
        };
        let (rate, regular) = match goes_on {
            true => slot.regular_at(distance as f32 / ns.max(1) as f32),
            false if slot.instruction == instruction => (slot.rate, slot.regular.saturating_sub(1)),
            false => (0.0, 0),
        };
        let up = if steady > 1 { slot.up } else { up };
        *slot = Slot {
            instruction,
            address,
            at_ns: now_ns,
            rate,
            regular,
            steady,
            up,
        };
        match steady >= STEADY {
            false => AccessPattern::Scattered,
            true if distance >= ns.saturating_mul(LIMITED_BYTES_PER_NS) => {
                AccessPattern::LimitedStream
            }
            true => AccessPattern::Stream,
        }
    }

    /// How an instruction has walked through memory at its last samples; `None` where it went irregularly or did not walk.
    #[must_use]
    pub const fn walk(&self, instruction: u64) -> Option<Walk> {
        let slot = &self.slots[Slot::of(instruction)];
        if slot.instruction != instruction || slot.regular < REGULAR {
            return None;
        }
        Some(Walk {
            bytes_per_ns: slot.rate,
            up: slot.up,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessPattern, Streams};

    const MS: u64 = 1_000_000;

    #[test]
    fn an_instruction_that_walks_through_memory_is_a_stream_from_its_fourth_sample_on() {
        let mut streams = Streams::default();
        let noted: Vec<AccessPattern> = (1..6)
            .map(|step| streams.note(0x400, step * 5_000_000, step * MS))
            .collect();
        assert_eq!(noted[..3], [AccessPattern::Scattered; 3]);
        assert_eq!(noted[3..], [AccessPattern::LimitedStream; 2]);
        let again = streams.note(0x400, 1, 6 * MS);
        assert_eq!(again, AccessPattern::Scattered, "too short to begin anew");
        for step in 7..20 {
            streams.note(0x400, step * 5_000_000, step * MS);
        }
        let anew: Vec<AccessPattern> = (0..3)
            .map(|step| streams.note(0x400, 1 + step * 5_000_000, (20 + step) * MS))
            .collect();
        assert_eq!(anew, [AccessPattern::LimitedStream; 3], "it begins anew");
    }

    #[test]
    fn a_thread_that_computes_much_for_each_element_is_not_limited_by_the_memory() {
        let mut streams = Streams::default();
        let last = (1..9)
            .map(|step| streams.note(0x400, step * 500_000, step * MS))
            .last();
        assert_eq!(last, Some(AccessPattern::Stream));
    }

    #[test]
    fn random_accesses_are_streams_rarely() {
        let mut streams = Streams::default();
        let mut state = 1u64;
        let (mut found, mut walks) = (0, 0);
        for step in 0..4_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let address = 1 << 40 | (state >> 38);
            let pattern = streams.note(0x400, address, step * MS);
            found += u32::from(pattern != AccessPattern::Scattered);
            walks += u32::from(streams.walk(0x400).is_some());
        }
        assert!(found < 800, "{found} of 4,000");
        assert!(walks < 300, "{walks} of 4,000");
    }

    #[test]
    fn the_same_word_again_and_again_is_no_stream() {
        let mut streams = Streams::default();
        let all = (0..9).all(|step| streams.note(0x400, 64, step * MS) == AccessPattern::Scattered);
        assert!(all);
    }
}
