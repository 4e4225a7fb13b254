//! `has_addresses` refuses a file in which no event has data addresses, or in which one that has them lacks times; `parse` reads the
//! process, time and address of a sample, and whether it is a write.

use isotherm_sys::perf::record::field::{ADDRESS, TIME};

use super::layout::Event;
use crate::error::Fault;
use crate::sample::Sample;

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;

/// Checks that samples have the required fields: an address and a time.
pub(super) fn has_addresses(events: &[Event]) -> Result<(), Fault> {
    const EXPECTED: &str = "samples with data addresses (`perf mem record`, `perf record -d`)";
    let has_address = |event: &&Event| event.sample.fields & ADDRESS != 0;
    let mut with_address = events.iter().filter(has_address).peekable();
    if with_address.peek().is_none() {
        if events.iter().any(|event| event.kind == TRACEPOINT) {
            let expected = "samples with data addresses; if these are regions of DAMON, print them \
                            with `perf script -i FILE > FILE.txt` and read that";
            return Err(Fault::new("its samples are tracepoints", expected));
        }
        return Err(Fault::new("no event has data addresses", EXPECTED));
    }
    match with_address.all(|event| event.sample.fields & TIME != 0) {
        true => Ok(()),
        false => {
            let expected = "samples with times (`perf record -T`)";
            Err(Fault::new("an event was recorded without times", expected))
        }
    }
}

/// Parses a sample; `None` if it is shorter than its fields.
pub(super) fn parse(body: &[u8], event: &Event) -> Option<Sample> {
    let sample = event.sample.sample(body)?;
    Some(Sample {
        pid: sample.pid,
        time: sample.time_ns,
        address: (sample.address != 0).then_some(sample.address),
        write: sample.is_store(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Event, Sample, parse};
    use crate::perf_data::layout::needed;
    use isotherm_sys::perf::record::SampleLayout;

    /// `PERF_SAMPLE_TIME | ADDR`.
    const TIME_AND_ADDRESS: u64 = 1 << 2 | 1 << 3;

    fn event(sample_type: u64) -> Event {
        Event {
            kind: 4,
            sample: SampleLayout {
                fields: needed(sample_type),
                ..SampleLayout::default()
            },
        }
    }

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_plain_sample_yields_process_time_address_and_direction() {
        /// `PERF_SAMPLE_IP | TID | TIME | ADDR | CPU | DATA_SRC`.
        const FIELDS: u64 = 1 | 1 << 1 | TIME_AND_ADDRESS | 1 << 7 | 1 << 15;
        let event = event(FIELDS);
        let words = [0x40_0000, 8 << 32 | 7, 99, 0x7fff_0000, 3, 0x2_8810_0144];
        let sample = parse(&body(&words), &event);
        let expected = Sample {
            pid: 7,
            time: 99,
            address: Some(0x7fff_0000),
            write: true,
        };
        assert_eq!(sample, Some(expected));
        assert_eq!(parse(&body(&words[..5]), &event), None);
    }

    #[test]
    fn fields_behind_the_last_needed_one_are_not_read() {
        /// `PERF_SAMPLE_CALLCHAIN | REGS_INTR | PHYS_ADDR`.
        const BEHIND: u64 = 1 << 5 | 1 << 18 | 1 << 19;
        let event = event(TIME_AND_ADDRESS | BEHIND);
        let sample = parse(&body(&[5, 0x1000]), &event).expect("is whole");
        assert_eq!((sample.address, sample.write), (Some(0x1000), false));
    }

    #[test]
    fn an_address_of_zero_is_none() {
        let sample = parse(&body(&[5, 0]), &event(TIME_AND_ADDRESS)).expect("is whole");
        assert_eq!((sample.address, sample.write), (None, false));
    }
}
