//! Parses the body of one sample, in the order of `perf_event_open(2)`.

use super::layout::Event;
use crate::error::Fault;
use crate::sample::Sample;

const IP: u64 = 1;
const TID: u64 = 1 << 1;
/// `PERF_SAMPLE_TIME`.
const TIME: u64 = 1 << 2;
/// `PERF_SAMPLE_ADDR`.
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const BRANCH_STACK: u64 = 1 << 11;
const REGS_USER: u64 = 1 << 12;
const STACK_USER: u64 = 1 << 13;
const WEIGHT: u64 = 1 << 14;
const DATA_SRC: u64 = 1 << 15;
const IDENTIFIER: u64 = 1 << 16;
const WEIGHT_STRUCT: u64 = 1 << 24;

const READ_TIME_ENABLED: u64 = 1;
const READ_TIME_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const READ_GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;

/// `PERF_MEM_OP_STORE` of the data source.
const OP_STORE: u64 = 4;

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;

/// Checks that samples have the required fields: an address and a time.
pub(super) fn has_addresses(events: &[Event]) -> Result<(), Fault> {
    const EXPECTED: &str = "samples with data addresses (`perf mem record`, `perf record -d`)";
    let with_address = || events.iter().filter(|event| event.sample_type & ADDR != 0);
    if with_address().next().is_none() {
        if events.iter().any(|event| event.kind == TRACEPOINT) {
            let expected = "samples with data addresses; if these are regions of DAMON, print them \
                            with `perf script -i FILE > FILE.txt` and read that";
            return Err(Fault::new("its samples are tracepoints", expected));
        }
        return Err(Fault::new("no event has data addresses", EXPECTED));
    }
    match with_address().all(|event| event.sample_type & TIME != 0) {
        true => Ok(()),
        false => Err(Fault::new(
            "an event was recorded without times",
            "samples with times (`perf record -T`)",
        )),
    }
}

/// Parses a sample; `None` if it is shorter than its fields.
pub(super) fn parse(body: &[u8], event: &Event) -> Option<Sample> {
    let mut rest = Words(body);
    let has = |field: u64| event.sample_type & field != 0;
    let mut field = |bit: u64| match has(bit) {
        true => rest.word(),
        false => Some(0),
    };
    field(IDENTIFIER)?;
    field(IP)?;
    let thread = field(TID)?;
    let time = field(TIME)?;
    let address = field(ADDR)?;
    // Every field up to the data source must be skipped; none after it is needed.
    let write = has(DATA_SRC) && {
        for bit in [ID, STREAM_ID, CPU, PERIOD] {
            field(bit)?;
        }
        rest.pass_variable(event)?;
        if has(WEIGHT | WEIGHT_STRUCT) {
            rest.word()?;
        }
        rest.word()? & OP_STORE != 0
    };
    Some(Sample {
        // The process is the lower half of the word, the thread the upper one.
        pid: thread as u32,
        time,
        address: (address != 0).then_some(address),
        write,
    })
}

/// The remaining words of a body.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn pass_bytes(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    fn pass_words(&mut self, words: u64) -> Option<()> {
        self.pass_bytes(words.checked_mul(8)?)
    }

    /// Skips the fields of variable length before the weight.
    fn pass_variable(&mut self, event: &Event) -> Option<()> {
        let has = |field: u64| event.sample_type & field != 0;
        if has(READ) {
            self.pass_counters(event.read_format)?;
        }
        if has(CALLCHAIN) {
            let callers = self.word()?;
            self.pass_words(callers)?;
        }
        if has(RAW) {
            let (size, rest) = self.0.split_first_chunk()?;
            self.0 = rest;
            self.pass_bytes(u64::from(u32::from_le_bytes(*size)))?;
        }
        if has(BRANCH_STACK) {
            self.pass_branches(event.branch_type)?;
        }
        // This word is zero if there are no registers.
        if has(REGS_USER) && self.word()? != 0 {
            self.pass_words(u64::from(event.user_registers))?;
        }
        if has(STACK_USER) {
            let bytes = self.word()?;
            self.pass_bytes(bytes)?;
            if bytes != 0 {
                self.word()?;
            }
        }
        Some(())
    }

    /// A counter, or a group of them, each with its id and losses, with times for all.
    fn pass_counters(&mut self, format: u64) -> Option<()> {
        let has = |bit: u64| u64::from(format & bit != 0);
        let times = has(READ_TIME_ENABLED) + has(READ_TIME_RUNNING);
        let each = 1 + has(READ_ID) + has(READ_LOST);
        let counters = if format & READ_GROUP != 0 {
            self.word()?
        } else {
            1
        };
        self.pass_words(counters.checked_mul(each)?.checked_add(times)?)
    }

    /// Branches are three words each, and a fourth where they carry counters.
    fn pass_branches(&mut self, kind: u64) -> Option<()> {
        let has = |bit: u64| u64::from(kind & bit != 0);
        let branches = self.word()?;
        let words = branches.checked_mul(3 + has(BRANCH_COUNTERS))?;
        self.pass_words(words.checked_add(has(BRANCH_HW_INDEX))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sample_type: u64) -> Event {
        Event {
            kind: 4,
            sample_type,
            read_format: READ_GROUP | READ_ID | READ_TIME_ENABLED,
            branch_type: BRANCH_HW_INDEX,
            user_registers: 2,
        }
    }

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_plain_sample_yields_process_time_address_and_direction() {
        let event = event(IP | TID | TIME | ADDR | CPU | DATA_SRC);
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
    fn fields_of_variable_length_are_passed_over() {
        let fields = READ | CALLCHAIN | BRANCH_STACK | REGS_USER | STACK_USER | WEIGHT;
        let event = event(TIME | ADDR | fields | DATA_SRC);
        let words = [
            1, 0x1000, // time, address
            2, 9, 5, 6, 5, 6, // two counters with ids, one time
            1, 0xcafe, // one caller
            1, 0, 7, 7, 7, // one branch with the hardware's index
            2, 8, 8, // two registers
            8, 8, 8,  // eight bytes of stack, and how many count
            40, // weight
            4,  // data source: a store
        ];
        let sample = parse(&body(&words), &event).expect("is whole");
        assert!(sample.write && sample.address == Some(0x1000));
        for cut in 2..words.len() {
            assert_eq!(parse(&body(&words[..cut]), &event), None, "{cut} words");
        }
    }

    #[test]
    fn lengths_that_overflow_are_refused() {
        for field in [READ, CALLCHAIN, BRANCH_STACK, STACK_USER] {
            let event = event(field | DATA_SRC);
            assert_eq!(parse(&body(&[u64::MAX, 1, 2, 3]), &event), None);
        }
    }

    #[test]
    fn an_address_of_zero_is_none() {
        let sample = parse(&body(&[5, 0]), &event(TIME | ADDR)).expect("is whole");
        assert_eq!((sample.address, sample.write), (None, false));
    }
}
