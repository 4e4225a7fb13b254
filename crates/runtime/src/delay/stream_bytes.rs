//! [`StreamBytes`] estimates from samples how many bytes a thread's streams have advanced since the last one, for the bandwidth that
//! programs on an emulated machine share. Instructions of a loop that walk through one array are one stream: a sample of any of them moves
//! its end, so that the bytes between two samples count once.

use isotherm_cache_estimate::Walk;

/// Streams whose ends are remembered. With more at once, the rest advance by the work of their own samples only.
const FRONTS: usize = 16;

/// Longest time since the last sample in which a stream is assumed to go on, in nanoseconds of the thread's work.
const LIVE_NS: u64 = 16_000_000;

/// Streams that are not farther apart than this are one.
const BESIDE_BYTES: u64 = 65_536;

/// How far a stream has come.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Front {
    address: u64,
    /// The thread's work at that time, in nanoseconds.
    at_ns: u64,
    /// Bytes a nanosecond; 0 where the place is free.
    rate: f32,
    up: bool,
}

/// The ends of one thread's streams. Memory of all zero bytes is a valid value without any.
pub(super) struct StreamBytes {
    fronts: [Front; FRONTS],
}

impl StreamBytes {
    /// Bytes that a stream has advanced to a sampled address, when the thread has worked for `now_ns` nanoseconds; of one that begins
    /// anew, what it advances in `work_ns`, the work since the last sample.
    ///
    /// Of several streams it is the one that is expected closest to the address. The nearest end would often be one that an earlier walk
    /// through the same array left there.
    pub(super) fn advance(&mut self, walk: Walk, address: u64, now_ns: u64, work_ns: u64) -> u64 {
        let known = (self.fronts.iter_mut())
            .filter_map(|front| Some((front.reaches(address, now_ns)?, front)))
            .min_by_key(|(distance, front)| distance.abs_diff(front.expected(now_ns)));
        if let Some((distance, front)) = known {
            // The rate stays: a single distance says little.
            (front.address, front.at_ns) = (address, now_ns);
            return distance;
        }
        if let Some(oldest) = self.fronts.iter_mut().min_by_key(|front| front.at_ns) {
            *oldest = Front {
                address,
                at_ns: now_ns,
                rate: walk.bytes_per_ns,
                up: walk.up,
            };
        }
        (walk.bytes_per_ns * work_ns as f32) as u64
    }
}

impl Front {
    /// The distance to an address ahead that the stream can have reached; `None` of others.
    fn reaches(&self, address: u64, now_ns: u64) -> Option<u64> {
        let distance = match self.up {
            true => address.checked_sub(self.address),
            false => self.address.checked_sub(address),
        }?;
        // Twice as far as it should be is another stream.
        let most = BESIDE_BYTES + 2 * self.expected(now_ns);
        (self.rate > 0.0 && distance <= most).then_some(distance)
    }

    /// Bytes that the stream advances until `now_ns` at its rate.
    fn expected(&self, now_ns: u64) -> u64 {
        let ns = now_ns.saturating_sub(self.at_ns).min(LIVE_NS);
        (f64::from(self.rate) * ns as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use isotherm_cache_estimate::Streams;

    use super::{FRONTS, Front, StreamBytes};

    const MS: u64 = 1_000_000;

    impl StreamBytes {
        const fn new() -> Self {
            let none = Front {
                address: 0,
                at_ns: 0,
                rate: 0.0,
                up: false,
            };
            Self {
                fronts: [none; FRONTS],
            }
        }
    }

    #[test]
    fn the_bytes_of_a_loop_are_those_of_its_arrays() {
        let (mut streams, mut ends) = (Streams::default(), StreamBytes::new());
        // Two loads and a store of three arrays, and another instruction at the first one's elements.
        let arrays = [1u64 << 40, (1 << 40) + (256 << 20), 1 << 42, 1 << 40];
        let mut bytes = 0;
        for step in 0..400u64 {
            let number = (step * 7 / 3 % 4) as usize;
            let (instruction, address) = (0x400 + number as u64, arrays[number] + step * 400_000);
            streams.note(instruction, address, step * MS);
            let walk = streams.walk(instruction);
            let advanced = walk.map(|walk| ends.advance(walk, address, step * MS, MS));
            if step >= 100 {
                bytes += advanced.expect("a stream");
            }
        }
        let all = 3 * 300 * 400_000;
        assert!(bytes.abs_diff(all) < all / 50, "{bytes} of {all}");
    }

    #[test]
    fn a_stream_that_begins_anew_goes_on_at_its_rate() {
        let (mut streams, mut ends) = (Streams::default(), StreamBytes::new());
        for down in [false, true] {
            let mut bytes = 0;
            for step in 1..100u64 {
                let way = step % 20 * 1_000_000;
                let address = (1 << 40) + if down { (1 << 30) - way } else { way };
                let now = (step + 1_000 * u64::from(down)) * MS;
                streams.note(0x400, address, now);
                if let Some(walk) = streams.walk(0x400) {
                    bytes += ends.advance(walk, address, now, MS);
                }
            }
            assert!(
                (75_000_000..=105_000_000).contains(&bytes),
                "{bytes}, down: {down}"
            );
        }
    }

    /// A sample is late now and then, so that no stream reaches it and a new one begins in the middle of the array.
    #[test]
    fn ends_that_earlier_walks_left_in_an_array_take_no_bytes() {
        let (mut streams, mut ends) = (Streams::default(), StreamBytes::new());
        let (mut way, mut all, mut bytes) = (0, 0, 0);
        for step in 1..2_000u64 {
            let distance = if step % 17 == 0 {
                34_000_000
            } else {
                10_000_000
            };
            let is_end = way + distance > 134_000_000;
            way = if is_end {
                way + distance - 134_000_000
            } else {
                way + distance
            };
            all += distance;
            let (instruction, address) = (0x400 + step * 7 / 3 % 3, (1 << 40) + way);
            streams.note(instruction, address, step * MS);
            if let Some(walk) = streams.walk(instruction) {
                bytes += ends.advance(walk, address, step * MS, MS);
            }
        }
        assert!(
            bytes > all * 4 / 5 && bytes < all * 11 / 10,
            "{bytes} of {all}"
        );
    }

    #[test]
    fn random_accesses_advance_streams_rarely() {
        let (mut streams, mut ends) = (Streams::default(), StreamBytes::new());
        let (mut state, mut bytes) = (1u64, 0);
        for step in 0..4_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let address = 1 << 40 | (state >> 38);
            streams.note(0x400, address, step * MS);
            if let Some(walk) = streams.walk(0x400) {
                bytes += ends.advance(walk, address, step * MS, MS);
            }
        }
        assert!(bytes < 4_000 * 1_000_000, "{bytes}");
    }
}
