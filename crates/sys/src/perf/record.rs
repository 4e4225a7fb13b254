//! [`Records`] decodes the bytes of a perf ring into each [`Record`]: samples, forks, exits, names of threads, executable mappings, AUX
//! data, losses and throttling.
//!
//! The bytes come from a shared buffer (and from a fuzzer): no size or offset in them is trusted. A record that
//! lacks what its type promises becomes [`Record::Malformed`]; a record with an impossible size ends the walk,
//! because the start of the next one is unknown.
//!
//! ```text
//! header (8)
//! +------+------+------+
//! | type | misc | size |  body: [`SampleLayout::sample`] and the functions below
//! +------+------+------+
//!  u32    u16    u16
//! ```

mod fields;
mod sample;

use perf_event_open_sys::bindings as abi;

use fields::Fields;
pub use fields::RecordOrigin;
pub use isotherm_decode::Registers;
pub use sample::{PerfSample, STORE, SampleLayout, field, level};

/// One record.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every record is a sample, looked at once where it stands"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A sample.
    Sample(PerfSample),
    /// The number of records or samples that were dropped because the ring was full.
    Lost(u64),
    /// A process or thread was made.
    Fork {
        /// The new thread's process.
        pid: u32,
        /// The process that made it.
        parent: u32,
        /// The new thread; equal to `pid` for a new process.
        tid: u32,
        /// Time, `CLOCK_MONOTONIC`, nanoseconds.
        time_ns: u64,
    },
    /// A thread, or with `tid == pid` a process, ended.
    Exit {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Time, `CLOCK_MONOTONIC`, nanoseconds.
        time_ns: u64,
    },
    /// A thread got a new name.
    Comm {
        /// Process.
        pid: u32,
        /// The name, of at most 15 bytes.
        name: &'a [u8],
        /// Whether exec gave the name.
        exec: bool,
        /// Time, `CLOCK_MONOTONIC`, nanoseconds; 0 where it was not recorded.
        time_ns: u64,
    },
    /// A mapping with executable pages was made.
    Mapping(Mapping<&'a [u8]>),
    /// The hardware wrote bytes to the AUX ring.
    Aux {
        /// Position of the first byte; it only grows.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
        /// Whether data is missing behind them.
        truncated: bool,
        /// The thread and the processor of the bytes.
        origin: RecordOrigin,
    },
    /// The kernel stopped (true) or resumed sampling because of its cost.
    Throttled(bool),
    /// A record of another type.
    Other(u32),
    /// A record that is shorter than its type needs.
    Malformed(u32),
}

/// An executable mapping, with a path of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<P> {
    /// Its process.
    pub pid: u32,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Offset in the file.
    pub file_offset: u64,
    /// Inode; 0 for no file.
    pub inode: u64,
    /// Path as the kernel prints it, or a name such as `[vdso]`, `//anon`.
    pub path: P,
    /// Time, `CLOCK_MONOTONIC`, nanoseconds; 0 where it was not recorded.
    pub time_ns: u64,
}

impl Mapping<&[u8]> {
    /// The mapping, with a copy of the path.
    #[must_use]
    pub fn owned(&self) -> Mapping<Vec<u8>> {
        Mapping {
            pid: self.pid,
            address: self.address,
            bytes: self.bytes,
            file_offset: self.file_offset,
            inode: self.inode,
            path: self.path.to_vec(),
            time_ns: self.time_ns,
        }
    }
}

/// Walks the records in `bytes`; the rest after the last whole one is not returned.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    layout: SampleLayout,
}

impl<'a> Records<'a> {
    /// Records read from rings of events with this layout.
    #[must_use]
    pub const fn new(bytes: &'a [u8], layout: SampleLayout) -> Self {
        Self { bytes, layout }
    }

    /// Bytes not yet walked; after the end, the incomplete rest.
    #[must_use]
    pub const fn rest(&self) -> usize {
        self.bytes.len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let mut header = Fields { bytes: self.bytes };
        let kind = header.word()?;
        let misc_and_size = header.word()?;
        let (misc, size) = (misc_and_size as u16, (misc_and_size >> 16) as usize);
        let record = self.bytes.get(..size).filter(|_| size >= 8)?;
        self.bytes = &self.bytes[size..];
        let body = Fields {
            bytes: &record[8..],
        };
        Some(take_apart(kind, misc, body, self.layout).unwrap_or(Record::Malformed(kind)))
    }
}

fn take_apart<'a>(
    kind: u32,
    misc: u16,
    mut body: Fields<'a>,
    layout: SampleLayout,
) -> Option<Record<'a>> {
    Some(match kind {
        abi::PERF_RECORD_SAMPLE => Record::Sample(layout.sample(body.bytes)?),
        abi::PERF_RECORD_LOST => {
            body.skip(8)?;
            Record::Lost(body.long()?)
        }
        abi::PERF_RECORD_LOST_SAMPLES => Record::Lost(body.long()?),
        abi::PERF_RECORD_FORK | abi::PERF_RECORD_EXIT => {
            let (pid, parent) = (body.word()?, body.word()?);
            let tid = body.word()?;
            body.skip(4)?;
            let time_ns = body.long()?;
            if kind == abi::PERF_RECORD_EXIT {
                Record::Exit { pid, tid, time_ns }
            } else {
                Record::Fork {
                    pid,
                    parent,
                    tid,
                    time_ns,
                }
            }
        }
        abi::PERF_RECORD_COMM => {
            let time_ns = body.trailing_time();
            let pid = body.word()?;
            body.skip(4)?;
            Record::Comm {
                pid,
                name: body.text(),
                exec: u32::from(misc) & abi::PERF_RECORD_MISC_COMM_EXEC != 0,
                time_ns,
            }
        }
        abi::PERF_RECORD_MMAP2 => Record::Mapping(mapping(body)?),
        abi::PERF_RECORD_AUX => aux(body)?,
        abi::PERF_RECORD_THROTTLE => Record::Throttled(true),
        abi::PERF_RECORD_UNTHROTTLE => Record::Throttled(false),
        other => Record::Other(other),
    })
}

fn aux(mut body: Fields<'_>) -> Option<Record<'_>> {
    // Bits for a full ring, and for records that the hardware dropped or could not order.
    const LOSS: u32 =
        abi::PERF_AUX_FLAG_TRUNCATED | abi::PERF_AUX_FLAG_PARTIAL | abi::PERF_AUX_FLAG_COLLISION;
    let (offset, bytes, flags) = (body.long()?, body.long()?, body.long()?);
    Some(Record::Aux {
        offset,
        bytes,
        truncated: flags & u64::from(LOSS) != 0,
        origin: body.origin().unwrap_or_default(),
    })
}

fn mapping(mut body: Fields<'_>) -> Option<Mapping<&[u8]>> {
    let time_ns = body.trailing_time();
    let pid = body.word()?;
    body.skip(4)?;
    let (address, bytes, file_offset) = (body.long()?, body.long()?, body.long()?);
    body.skip(8)?;
    let inode = body.long()?;
    body.skip(16)?;
    Some(Mapping {
        pid,
        address,
        bytes,
        file_offset,
        inode,
        path: body.text(),
        time_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::{Record, RecordOrigin, Records, SampleLayout, abi};

    const LAYOUT: SampleLayout = SampleLayout {
        fields: (abi::PERF_SAMPLE_IP
            | abi::PERF_SAMPLE_TID
            | abi::PERF_SAMPLE_TIME
            | abi::PERF_SAMPLE_ADDR
            | abi::PERF_SAMPLE_CPU
            | abi::PERF_SAMPLE_REGS_USER) as u64,
        registers: 0b101,
        counters: 0,
        branches: 0,
    };

    fn record(kind: u32, misc: u16, longs: &[u64]) -> Vec<u8> {
        let size = 8 + 8 * longs.len() as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(longs.iter().flat_map(|long| long.to_ne_bytes()));
        bytes
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from_ne_bytes(
            [low.to_ne_bytes(), high.to_ne_bytes()]
                .concat()
                .try_into()
                .unwrap(),
        )
    }

    #[test]
    fn a_sample_gives_back_what_was_put_in() {
        let longs = [0x401000, pair(7, 8), 99, 0xbeef, pair(1, 0), 2, 11, 22];
        let bytes = record(abi::PERF_RECORD_SAMPLE, 0, &longs);
        let Some(Record::Sample(sample)) = Records::new(&bytes, LAYOUT).next() else {
            panic!("no sample");
        };
        assert_eq!((sample.ip, sample.pid, sample.tid), (0x401000, 7, 8));
        assert_eq!(
            (sample.time_ns, sample.address, sample.cpu),
            (99, 0xbeef, 1)
        );
        let registers = [0, 1, 2, 200].map(|number| sample.registers.get(number));
        assert_eq!(registers, [Some(11), None, Some(22), None]);
    }

    #[test]
    fn the_physical_address_is_the_last_field_and_zero_is_none() {
        let layout = SampleLayout {
            fields: LAYOUT.fields
                | u64::from(abi::PERF_SAMPLE_WEIGHT)
                | u64::from(abi::PERF_SAMPLE_DATA_SRC)
                | u64::from(abi::PERF_SAMPLE_PHYS_ADDR),
            ..LAYOUT
        };
        let sample = |longs: &[u64]| {
            let bytes = record(abi::PERF_RECORD_SAMPLE, 0, longs);
            Records::new(&bytes, layout)
                .next()
                .map(|record| match record {
                    Record::Sample(sample) => Some((sample.weight, sample.physical)),
                    _ => None,
                })
        };
        let fields = [0x401000, pair(7, 8), 99, 0xbeef, pair(1, 0), 2, 11, 22, 333];
        let with = |physical: u64| [&fields[..], &[0x42, physical]].concat();
        assert_eq!(
            sample(&with(0x1_2345_6789)),
            Some(Some((333, Some(0x1_2345_6789))))
        );
        assert_eq!(sample(&with(0)), Some(Some((333, None))));
        assert_eq!(sample(&fields), Some(None), "too short");
    }

    #[test]
    fn a_sample_is_as_long_as_its_layout_says() {
        let longs = [0x401000, pair(7, 8), 99, 0xbeef, pair(1, 0), 2, 11, 22];
        let bytes = record(abi::PERF_RECORD_SAMPLE, 0, &longs);
        assert_eq!(LAYOUT.sample_bytes(), bytes.len());
    }

    #[test]
    fn a_thread_of_the_kernel_has_no_registers() {
        let longs = [1, pair(7, 8), 99, 0, pair(1, 0), 0];
        let bytes = record(abi::PERF_RECORD_SAMPLE, 0, &longs);
        let Some(Record::Sample(sample)) = Records::new(&bytes, LAYOUT).next() else {
            panic!("no sample");
        };
        assert_eq!(sample.registers.get(0), None);
    }

    #[test]
    fn losses_forks_execs_and_mappings_are_read() {
        let mut bytes = record(abi::PERF_RECORD_LOST, 0, &[1, 42, 0, 0, 0]);
        bytes.extend(record(
            abi::PERF_RECORD_FORK,
            0,
            &[pair(9, 7), pair(9, 7), 5],
        ));
        let exec = abi::PERF_RECORD_MISC_COMM_EXEC as u16;
        let name = u64::from_ne_bytes(*b"true\0\0\0\0");
        bytes.extend(record(
            abi::PERF_RECORD_COMM,
            exec,
            &[pair(9, 9), name, pair(9, 9), 6, 0],
        ));
        let path = u64::from_ne_bytes(*b"/bin/so\0");
        let longs = [
            pair(9, 9),
            4096,
            8192,
            512,
            0,
            77,
            0,
            0,
            path,
            pair(9, 9),
            7,
            0,
        ];
        bytes.extend(record(abi::PERF_RECORD_MMAP2, 0, &longs));
        let mut records = Records::new(&bytes, LAYOUT);
        assert_eq!(records.next(), Some(Record::Lost(42)));
        let fork = Record::Fork {
            pid: 9,
            parent: 7,
            tid: 9,
            time_ns: 5,
        };
        assert_eq!(records.next(), Some(fork));
        let comm = Record::Comm {
            pid: 9,
            name: b"true",
            exec: true,
            time_ns: 6,
        };
        assert_eq!(records.next(), Some(comm));
        let Some(Record::Mapping(mapping)) = records.next() else {
            panic!("no mapping");
        };
        assert_eq!(
            (mapping.address, mapping.bytes, mapping.file_offset),
            (4096, 8192, 512)
        );
        assert_eq!((mapping.inode, mapping.path), (77, b"/bin/so".as_slice()));
        assert_eq!(mapping.time_ns, 7);
        assert_eq!((records.next(), records.rest()), (None, 0));
    }

    #[test]
    fn what_the_hardware_wrote_is_announced_with_whose_it_is() {
        let truncated = u64::from(abi::PERF_AUX_FLAG_TRUNCATED);
        let longs = [96, 40, truncated, pair(7, 8), 99, pair(3, 0)];
        let bytes = record(abi::PERF_RECORD_AUX, 0, &longs);
        let aux = Record::Aux {
            offset: 96,
            bytes: 40,
            truncated: true,
            origin: RecordOrigin {
                pid: 7,
                tid: 8,
                time_ns: 99,
                cpu: 3,
            },
        };
        assert_eq!(Records::new(&bytes, LAYOUT).next(), Some(aux));
    }

    #[test]
    fn what_a_cache_served_did_not_go_to_memory() {
        let stays = |data_source| {
            let longs = [1, data_source];
            let bytes = record(abi::PERF_RECORD_SAMPLE, 0, &longs);
            let fields = u64::from(abi::PERF_SAMPLE_IP | abi::PERF_SAMPLE_DATA_SRC);
            let layout = SampleLayout {
                fields,
                ..SampleLayout::default()
            };
            match Records::new(&bytes, layout).next() {
                Some(Record::Sample(sample)) => sample.hit_a_cache(),
                other => panic!("{other:?}"),
            }
        };
        // Not known; load, hit in L1; hit in L2; missed L1; hit in L3; local memory.
        let found = [
            0,
            0x2 | 10 << 5,
            0x2 | 0x22 << 5,
            12 << 5,
            0x42 << 5,
            0x82 << 5,
        ]
        .map(stays);
        assert_eq!(found, [false, true, true, false, true, false]);
    }

    #[test]
    fn torn_sizes_end_the_walk_and_short_bodies_are_named() {
        let short = record(abi::PERF_RECORD_SAMPLE, 0, &[1]);
        assert_eq!(
            Records::new(&short, LAYOUT).collect::<Vec<_>>(),
            [Record::Malformed(abi::PERF_RECORD_SAMPLE)]
        );
        for size in [0u16, 7, 9000] {
            let mut torn = record(abi::PERF_RECORD_LOST, 0, &[1, 42]);
            torn[6..8].copy_from_slice(&size.to_ne_bytes());
            assert_eq!(Records::new(&torn, LAYOUT).count(), 0, "size {size}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_walk_panic_or_run_forever(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..4096),
            fields in proptest::num::u64::ANY,
            registers in proptest::num::u64::ANY,
            counters in 0u64..32,
            branches in proptest::num::u64::ANY,
        ) {
            let layout = SampleLayout { fields, registers, counters, branches };
            let walked = Records::new(&bytes, layout).count();
            proptest::prop_assert!(walked <= bytes.len() / 8);
        }

        #[test]
        fn whole_records_among_garbage_bodies_are_all_found(
            bodies in proptest::collection::vec((0u32..20, proptest::collection::vec(proptest::num::u64::ANY, 0..40)), 0..60),
        ) {
            let bytes: Vec<u8> = bodies.iter().flat_map(|(kind, longs)| record(*kind, 0, longs)).collect();
            proptest::prop_assert_eq!(Records::new(&bytes, LAYOUT).count(), bodies.len());
        }
    }
}
