//! [`SampleLayout`] decodes the body of one perf sample into a [`PerfSample`], from a live ring and from a `perf.data` file alike; fields
//! that Isotherm does not use, such as callers and branches, are skipped.
//!
//! The library `linux-perf-event-reader` is not used: it drops the weight and the data source, skips one word too few
//! where a sample has the weight as a structure, and confuses single counters with groups.
//!
//! ```text
//! +------------+----+----------+------+------+----+-----------+-----+--------+----------+
//! | identifier | ip | pid, tid | time | addr | id | stream id | cpu | period | counters |
//! +------------+----+----------+------+------+----+-----------+-----+--------+----------+
//!   8            8    4 + 4      8      8      8    8           8     8        8 * n
//! +---------+-----------+--------------+-----+-------+-------+--------+-----+------+
//! | callers | raw bytes | branch stack | abi | regs  | stack | weight | src | phys |
//! +---------+-----------+--------------+-----+-------+-------+--------+-----+------+
//!   8 + 8*n   4 + n       8 + 8*n        8     8 * n   8 + n   8        8     8
//! ```

use isotherm_decode::Registers;
use perf_event_open_sys::bindings as abi;

use super::fields::Fields;

/// `PERF_SAMPLE_*` bits that a file's reader checks.
pub mod field {
    use super::abi;

    /// The time.
    pub const TIME: u64 = abi::PERF_SAMPLE_TIME as u64;
    /// The data address.
    pub const ADDRESS: u64 = abi::PERF_SAMPLE_ADDR as u64;
    /// The data source.
    pub const DATA_SOURCE: u64 = abi::PERF_SAMPLE_DATA_SRC as u64;
    /// The fields up to the data address.
    pub const UP_TO_ADDRESS: u64 = ADDRESS
        | TIME
        | (abi::PERF_SAMPLE_IDENTIFIER | abi::PERF_SAMPLE_IP | abi::PERF_SAMPLE_TID) as u64;
    /// The fields up to the data source.
    pub const UP_TO_DATA_SOURCE: u64 =
        UP_TO_ADDRESS | (2 * DATA_SOURCE - 1) | abi::PERF_SAMPLE_WEIGHT_STRUCT as u64;
}

/// The content of each sample, which is needed to read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleLayout {
    /// `PERF_SAMPLE_*` bits. Behind the data source, only the physical address is read: none of the other fields there
    /// may be among them.
    pub fields: u64,
    /// Mask of the registers recorded.
    pub registers: u64,
    /// `PERF_FORMAT_*` bits of the counters in a sample.
    pub counters: u64,
    /// `PERF_SAMPLE_BRANCH_*` bits of the branch stack in a sample.
    pub branches: u64,
}

impl SampleLayout {
    /// Bytes of one sample with all that `PerfEventAttributes` can request, its header
    /// included.
    #[must_use]
    pub const fn sample_bytes(self) -> usize {
        // Each field is 8 bytes long, the one of the registers too: it holds their kind, and they follow.
        8 * (1 + self.fields.count_ones() + self.registers.count_ones()) as usize
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfSample {
    /// Address of the instruction.
    pub ip: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// Processor.
    pub cpu: u32,
    /// Data address, where the event has one; 0 where the hardware did not know it.
    pub address: u64,
    /// Latency in cycles, where the hardware knows it; else 0.
    pub weight: u64,
    /// `union perf_mem_data_src`; 0 where it was not requested.
    pub data_source: u64,
    /// Physical address of the data, where it was requested and known.
    pub physical: Option<u64>,
    /// The program's registers.
    pub registers: Registers,
}

/// Bits of `union perf_mem_data_src` for the level of the memory: five bits of the kind of access come before
/// them.
pub mod level {
    /// The access was served by the named levels.
    pub const HIT: u64 = 2 << 5;
    /// The named levels did not have it.
    pub const MISS: u64 = 4 << 5;
    /// The first level of cache.
    pub const FIRST: u64 = 8 << 5;
    /// The second level of cache.
    pub const SECOND: u64 = 0x20 << 5;
    /// The third level of cache.
    pub const THIRD: u64 = 0x40 << 5;
}

/// The bit of `union perf_mem_data_src` of a store.
pub const STORE: u64 = abi::PERF_MEM_OP_STORE as u64;

impl PerfSample {
    /// Whether the access was a store, as far as the hardware knows.
    #[must_use]
    pub const fn is_store(&self) -> bool {
        self.data_source & STORE != 0
    }

    /// True where the hardware knows that a cache of this socket served the access, so that no part of it went to
    /// memory.
    #[must_use]
    pub const fn hit_a_cache(&self) -> bool {
        let caches = level::FIRST | level::SECOND | level::THIRD;
        self.data_source & level::HIT != 0 && self.data_source & caches != 0
    }
}

impl SampleLayout {
    /// Reads the body of a sample, in the order in which `perf_event_open(2)` lists its fields; `None` where the
    /// body is shorter than they are.
    #[must_use]
    pub fn sample(self, body: &[u8]) -> Option<PerfSample> {
        let mut body = Fields { bytes: body };
        let rest = &mut body;
        self.number(rest, abi::PERF_SAMPLE_IDENTIFIER)?;
        let ip = self.number(rest, abi::PERF_SAMPLE_IP)?;
        let thread = self.number(rest, abi::PERF_SAMPLE_TID)?;
        let time_ns = self.number(rest, abi::PERF_SAMPLE_TIME)?;
        let address = self.number(rest, abi::PERF_SAMPLE_ADDR)?;
        self.number(rest, abi::PERF_SAMPLE_ID)?;
        self.number(rest, abi::PERF_SAMPLE_STREAM_ID)?;
        let cpu = self.number(rest, abi::PERF_SAMPLE_CPU)?;
        self.number(rest, abi::PERF_SAMPLE_PERIOD)?;
        self.skip_counters(rest)?;
        self.skip_callers(rest)?;
        self.skip_raw(rest)?;
        self.skip_branches(rest)?;
        let registers = self.read_registers(rest)?;
        self.skip_stack(rest)?;
        let weight = self.number(
            rest,
            abi::PERF_SAMPLE_WEIGHT | abi::PERF_SAMPLE_WEIGHT_STRUCT,
        )?;
        let data_source = self.number(rest, abi::PERF_SAMPLE_DATA_SRC)?;
        let physical = self.number(rest, abi::PERF_SAMPLE_PHYS_ADDR)?;
        Some(PerfSample {
            ip,
            // Two halves of a word, the first one below: the supported machines are little-endian.
            pid: thread as u32,
            tid: (thread >> 32) as u32,
            time_ns,
            cpu: cpu as u32,
            address,
            weight,
            data_source,
            // 0 where the kernel did not find the page; no program has data there.
            physical: Some(physical).filter(|address| *address != 0),
            registers,
        })
    }

    const fn has(self, field: u32) -> bool {
        self.fields & field as u64 != 0
    }

    /// A field of one number; 0 where samples do not have it.
    fn number(self, body: &mut Fields<'_>, field: u32) -> Option<u64> {
        if self.has(field) {
            body.long()
        } else {
            Some(0)
        }
    }

    /// Skips a counter, or a group of them, each with its id and losses, and the times of all.
    fn skip_counters(self, body: &mut Fields<'_>) -> Option<()> {
        if !self.has(abi::PERF_SAMPLE_READ) {
            return Some(());
        }
        let has = |bit: u32| u64::from(self.counters & u64::from(bit) != 0);
        let times =
            has(abi::PERF_FORMAT_TOTAL_TIME_ENABLED) + has(abi::PERF_FORMAT_TOTAL_TIME_RUNNING);
        let each = 1 + has(abi::PERF_FORMAT_ID) + has(abi::PERF_FORMAT_LOST);
        let counters = match has(abi::PERF_FORMAT_GROUP) {
            0 => 1,
            _ => body.long()?,
        };
        body.skip_longs(counters.checked_mul(each)?.checked_add(times)?)
    }

    fn skip_callers(self, body: &mut Fields<'_>) -> Option<()> {
        let callers = self.number(body, abi::PERF_SAMPLE_CALLCHAIN)?;
        body.skip_longs(callers)
    }

    fn skip_raw(self, body: &mut Fields<'_>) -> Option<()> {
        if !self.has(abi::PERF_SAMPLE_RAW) {
            return Some(());
        }
        let bytes = body.word()?;
        body.skip(u64::from(bytes))
    }

    /// Skips branches: three numbers each, and a fourth where they carry counters.
    fn skip_branches(self, body: &mut Fields<'_>) -> Option<()> {
        if !self.has(abi::PERF_SAMPLE_BRANCH_STACK) {
            return Some(());
        }
        let has = |bit: u32| u64::from(self.branches & u64::from(bit) != 0);
        let branches = body.long()?;
        let longs = branches.checked_mul(3 + has(abi::PERF_SAMPLE_BRANCH_COUNTERS))?;
        body.skip_longs(longs.checked_add(has(abi::PERF_SAMPLE_BRANCH_HW_INDEX))?)
    }

    /// Reads the registers. The registers of a 32-bit program are skipped: their numbers mean the same, but addresses
    /// computed from them would need another instruction decoder.
    fn read_registers(self, body: &mut Fields<'_>) -> Option<Registers> {
        let mut registers = Registers::NONE;
        let kept = match self.number(body, abi::PERF_SAMPLE_REGS_USER)? {
            0 => return Some(registers),
            abi => abi == u64::from(self::abi::PERF_SAMPLE_REGS_ABI_64),
        };
        let mut left = self.registers;
        while left != 0 {
            let value = body.long()?;
            if kept {
                registers.set(left.trailing_zeros() as u8, value);
            }
            left &= left - 1;
        }
        Some(registers)
    }

    /// Skips a copy of the stack, which is followed by the number of bytes in use if it is not empty.
    fn skip_stack(self, body: &mut Fields<'_>) -> Option<()> {
        match self.number(body, abi::PERF_SAMPLE_STACK_USER)? {
            0 => Some(()),
            bytes => body.skip(bytes.checked_add(8)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SampleLayout, abi};

    const READ: u32 = abi::PERF_SAMPLE_READ;
    const CALLCHAIN: u32 = abi::PERF_SAMPLE_CALLCHAIN;
    const BRANCH_STACK: u32 = abi::PERF_SAMPLE_BRANCH_STACK;
    const REGS_USER: u32 = abi::PERF_SAMPLE_REGS_USER;
    const STACK_USER: u32 = abi::PERF_SAMPLE_STACK_USER;
    const DATA_SRC: u32 = abi::PERF_SAMPLE_DATA_SRC;

    fn layout(fields: u32) -> SampleLayout {
        let counters =
            abi::PERF_FORMAT_GROUP | abi::PERF_FORMAT_ID | abi::PERF_FORMAT_TOTAL_TIME_ENABLED;
        SampleLayout {
            fields: fields.into(),
            registers: 0b11,
            counters: counters.into(),
            branches: abi::PERF_SAMPLE_BRANCH_HW_INDEX.into(),
        }
    }

    fn body(longs: &[u64]) -> Vec<u8> {
        longs.iter().flat_map(|long| long.to_ne_bytes()).collect()
    }

    #[test]
    fn fields_of_variable_length_are_passed_over() {
        let variable = READ | CALLCHAIN | BRANCH_STACK | REGS_USER | STACK_USER;
        let fields = abi::PERF_SAMPLE_TIME | abi::PERF_SAMPLE_ADDR | abi::PERF_SAMPLE_WEIGHT;
        let layout = layout(fields | variable | DATA_SRC);
        let longs = [
            1, 0x1000, // time, address
            2, 9, 5, 6, 5, 6, // two counters with ids, one time
            1, 0xcafe, // one caller
            1, 0, 7, 7, 7, // one branch with the hardware's index
            2, 8, 8, // two registers
            8, 8, 8,  // eight bytes of stack, and how many count
            40, // weight
            4,  // data source: a store
        ];
        let sample = layout.sample(&body(&longs)).expect("is whole");
        assert!(sample.is_store() && sample.address == 0x1000);
        assert_eq!((sample.time_ns, sample.weight), (1, 40));
        assert_eq!(sample.registers.get(1), Some(8));
        for cut in 2..longs.len() {
            assert_eq!(layout.sample(&body(&longs[..cut])), None, "{cut} longs");
        }
    }

    #[test]
    fn raw_bytes_are_passed_over() {
        let layout = layout(abi::PERF_SAMPLE_RAW | DATA_SRC);
        let mut bytes = 12_u32.to_ne_bytes().to_vec();
        bytes.extend([1; 12]);
        bytes.extend(4_u64.to_ne_bytes());
        assert!(layout.sample(&bytes).expect("is whole").is_store());
        assert_eq!(layout.sample(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn the_weight_may_be_a_structure() {
        let layout = layout(abi::PERF_SAMPLE_WEIGHT_STRUCT | DATA_SRC);
        let sample = layout.sample(&body(&[312, 2])).expect("is whole");
        assert_eq!((sample.weight, sample.data_source), (312, 2));
        assert!(!sample.is_store());
    }

    #[test]
    fn lengths_that_overflow_are_refused() {
        for field in [READ, CALLCHAIN, BRANCH_STACK, STACK_USER] {
            let layout = layout(field | DATA_SRC);
            assert_eq!(layout.sample(&body(&[u64::MAX, 1, 2, 3])), None);
        }
    }
}
