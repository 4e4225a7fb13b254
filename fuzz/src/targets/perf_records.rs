//! Records of a perf ring. The first 32 bytes are the layout of a sample, the next 16 the ring's
//! positions; the rest is the ring. A sample of a `perf.data` file is read by the same code.

use isotherm_sys::perf::record::{Record, Records, SampleLayout};
use isotherm_sys::perf::ring::spans;

use super::seeds::Seeds;

/// Bytes of the smallest record: its header.
const SMALLEST: usize = 8;

pub(crate) fn check(data: &[u8]) -> bool {
    let Some((head, ring)) = data.split_first_chunk::<48>() else {
        return false;
    };
    let number = |at: usize| {
        let bytes = head[at..].first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(bytes)
    };
    lies_within(1 << 14, number(32), number(40));
    let layout = SampleLayout {
        fields: number(0),
        registers: number(8),
        counters: number(16),
        branches: number(24),
    };
    let mut records = Records::new(ring, layout);
    let (mut known, mut count) = (0, 0);
    while let Some(record) = records.next() {
        count += 1;
        assert!(count * SMALLEST + records.rest() <= ring.len());
        if let Record::Mapping(mapping) = &record {
            assert!(!mapping.path.contains(&0));
        }
        known += usize::from(!matches!(record, Record::Other(_) | Record::Malformed(_)));
    }
    known > 0
}

/// The parts of a ring between two positions lie in it and are as long as the positions are apart.
fn lies_within(size: usize, tail: u64, head: u64) {
    if let Some(parts) = spans(size, tail, head) {
        assert!(
            parts
                .iter()
                .all(|part| part.start <= part.end && part.end <= size)
        );
        let bytes: usize = parts.iter().map(ExactSizeIterator::len).sum();
        assert_eq!(bytes as u64, head - tail);
    }
}

/// The layout of samples (groups of counters with ids, branches with the hardware's index), and positions in the
/// ring.
fn head(fields: u64, registers: u64) -> Vec<u8> {
    let numbers = [
        fields,
        registers,
        0b1100,
        1 << 17,
        16 << 10,
        (16 << 10) + 100,
    ];
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A record of a kind, with this body.
fn record(kind: u32, longs: &[u64]) -> Vec<u8> {
    let size = (SMALLEST + 8 * longs.len()) as u16;
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(0_u16.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(longs.iter().flat_map(|long| long.to_le_bytes()));
    bytes
}

/// Samples of the timer (ip, tid, time, registers) and of a PMU (address, processor, weight, data source,
/// physical address), samples with fields of variable length, and the records about processes.
pub(crate) fn seeds() -> Seeds {
    /// `PERF_SAMPLE_IP | TID | TIME | REGS_USER`.
    const FIELDS: u64 = 1 | 2 | 4 | 1 << 12;
    const SAMPLE: u32 = 9;
    /// `PERF_SAMPLE_IP | TID | TIME | ADDR | CPU | WEIGHT | DATA_SRC | PHYS_ADDR`.
    const PMU_FIELDS: u64 = 1 | 2 | 4 | 8 | 1 << 7 | 1 << 14 | 1 << 15 | 1 << 19;
    /// `PERF_SAMPLE_READ | CALLCHAIN | BRANCH_STACK | STACK_USER | DATA_SRC`.
    const VARIABLE_FIELDS: u64 = 1 << 4 | 1 << 5 | 1 << 11 | 1 << 13 | 1 << 15;
    let mut variable = head(VARIABLE_FIELDS, 0);
    variable.extend(record(
        SAMPLE,
        &[2, 9, 5, 9, 6, 1, 0x40_1000, 1, 0, 7, 7, 7, 8, 8, 8, 0x42],
    ));
    let mut samples = head(FIELDS, 0b111);
    samples.extend(record(
        SAMPLE,
        &[0x40_1000, 7 << 32 | 7, 99, 2, 0x10, 0x20, 0x30],
    ));
    samples.extend(record(SAMPLE, &[0x40_1004, 7 << 32 | 8, 100, 0]));
    let mut physical = head(PMU_FIELDS, 0);
    for known in [0x1_2345_6678, 0] {
        let longs = [
            0x40_1000,
            7 << 32 | 7,
            99,
            0x7f00_0000_0678,
            1,
            312,
            0x42,
            known,
        ];
        physical.extend(record(SAMPLE, &longs));
    }
    let mut others = head(FIELDS, 0);
    // Kinds of linux/perf_event.h: mmap2 10, lost 2, comm 3, exit 4, throttle 5, fork 7.
    others.extend(record(
        10,
        &[
            7 << 32 | 7,
            0x40_0000,
            0x1000,
            0,
            1,
            2,
            3,
            5,
            0x6f_2f,
            1,
            9,
            0,
        ],
    ));
    for kind in [2, 3, 4, 5, 7, 13] {
        others.extend(record(kind, &[7 << 32 | 7, 3, 9, 9, 9, 0]));
    }
    vec![
        ("samples", samples),
        ("physical", physical),
        ("variable", variable),
        ("others", others),
    ]
}
