//! [`samples`] decodes the records of Arm's statistical profiling extension (SPE) into one perf sample an operation, for
//! [`super::perf_ring`] and for trials of an event. The process, processor and time of a sample are those of the trace, the bytes that the
//! kernel passed on together, not those in the record.
//!
//! The extension follows one operation in each sample period through the core and writes a record of
//! packets about it into memory. A packet is a byte with its kind and length, and 1, 2, 4 or 8 bytes,
//! lowest first; a record ends with an end or a timestamp packet.
//!
//! ```text
//! b2 | 8 bytes   data address, virtual       42 | 1..8 bytes   events: caches missed, ...
//! b3 | 8 bytes   data address, physical      43 | 1..8 bytes   source of the data
//! b0 | 8 bytes   instruction address         49 | 1 byte       load or store
//! 98 | 2 bytes   cycles it took in all       71 | 8 bytes      timestamp
//! 65 | 4 bytes   context (process)           00                padding
//! 01             end
//! ```
//!
//! The bytes come from hardware through a shared buffer (and from a fuzzer): unknown bytes are skipped
//! one at a time and counted.
//!
//! Format: Arm Architecture Reference Manual for A-profile (DDI 0487), chapter D17, "Statistical Profiling
//! Extension sample record specification". It has been tested on bytes that the tests build by that
//! chapter, and on no processor.

use isotherm_sys::perf::aux::AuxTrace;
use isotherm_sys::perf::record::{PerfSample, Registers, STORE, level};

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A byte of padding.
    Padding,
    /// The record ends.
    End,
    /// The record ends, with its time: ticks of the generic timer.
    Timestamp(u64),
    /// The kind of an address, and the address: 0 the instruction, 1 a branch's target, 2 virtual and 3
    /// physical data, 4 the target of the branch before.
    Address(u8, u64),
    /// The kind of a count, and its cycles: 0 in total, 1 until issue, 2 until translation.
    Counter(u8, u16),
    /// `CONTEXTIDR`, which is the thread on a kernel with `CONFIG_PID_IN_CONTEXTIDR`.
    Context(u32),
    /// Class and details of the operation.
    Operation(u8, u8),
    /// Event bits; see [`event`].
    Events(u64),
    /// The source of the data, by the processor's own numbers.
    DataSource(u64),
}

/// Iterates over the packets in `bytes`.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    bytes: &'a [u8],
    unknown: u64,
}

impl<'a> Packets<'a> {
    /// Packets from the beginning of a packet on.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, unknown: 0 }
    }

    /// Bytes skipped so far because they are not a packet, including a truncated last one.
    #[must_use]
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    /// The payload whose length the header gives.
    fn payload(&mut self, header: u8) -> Option<u64> {
        let size = 1 << (header >> 4 & 3);
        let Some((payload, rest)) = self.bytes.split_at_checked(size) else {
            self.unknown += 1 + self.bytes.len() as u64;
            self.bytes = &[];
            return None;
        };
        self.bytes = rest;
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(payload);
        Some(u64::from_le_bytes(bytes))
    }
}

impl Iterator for Packets<'_> {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        loop {
            let mut header = self.byte()?;
            let mut index = 0;
            // A prefix byte before the header holds the upper bits of an index larger than 7.
            if header & 0xfc == 0x20 {
                index = (header & 3) << 3;
                header = self.byte()?;
            }
            index |= header & 7;
            return Some(match header {
                0x00 => Packet::Padding,
                0x01 => Packet::End,
                0x71 => Packet::Timestamp(self.payload(header)?),
                _ if header & 0xf8 == 0xb0 => Packet::Address(index, self.payload(header)?),
                _ if header & 0xf8 == 0x98 => Packet::Counter(index, self.payload(header)? as u16),
                _ if header & 0xfc == 0x64 => Packet::Context(self.payload(header)? as u32),
                _ if header & 0xfc == 0x48 => {
                    Packet::Operation(header & 3, self.payload(header)? as u8)
                }
                _ if header & 0xcf == 0x42 => Packet::Events(self.payload(header)?),
                _ if header & 0xcf == 0x43 => Packet::DataSource(self.payload(header)?),
                _ => {
                    self.unknown += 1;
                    continue;
                }
            });
        }
    }
}

/// One sampled operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Virtual address of its data; 0 where it has none.
    pub address: u64,
    /// Physical address of its data, where it was recorded.
    pub physical: Option<u64>,
    /// Address of the instruction; 0 where it was not recorded.
    pub ip: u64,
    /// Cycles that it took.
    pub latency: u16,
    /// It wrote memory.
    pub store: bool,
    /// Event bits, by the names in [`event`].
    pub events: u64,
    /// The source of its data, by the processor's own numbers.
    pub data_source: Option<u64>,
}

/// Event bits of an operation.
pub mod event {
    /// It accessed the first level of data cache.
    pub const FIRST_LEVEL: u64 = 1 << 2;
    /// It missed the first level.
    pub const FIRST_LEVEL_MISS: u64 = 1 << 3;
    /// It accessed the last level of cache.
    pub const LAST_LEVEL: u64 = 1 << 8;
    /// It missed the last level.
    pub const LAST_LEVEL_MISS: u64 = 1 << 9;
}

/// Joins packets to operations. An operation without an end packet before the end of the bytes is
/// dropped.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    packets: Packets<'a>,
}

impl<'a> Operations<'a> {
    /// Operations from the beginning of an operation on.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            packets: Packets::new(bytes),
        }
    }

    /// As [`Packets::unknown`].
    #[must_use]
    pub const fn unknown(&self) -> u64 {
        self.packets.unknown()
    }
}

impl Iterator for Operations<'_> {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        /// The class of loads, stores and atomic operations, and their bit that marks stores.
        const MEMORY: u8 = 1;
        const STORE: u8 = 1;
        let mut operation = Operation::default();
        let mut is_empty = true;
        loop {
            let packet = self.packets.next()?;
            match packet {
                Packet::End | Packet::Timestamp(_) if is_empty => continue,
                Packet::End | Packet::Timestamp(_) => return Some(operation),
                Packet::Padding => continue,
                Packet::Address(0, address) => operation.ip = untagged(address),
                Packet::Address(2, address) => operation.address = untagged(address),
                Packet::Address(3, address) => operation.physical = Some(address & ADDRESS_BITS),
                Packet::Counter(0, cycles) => operation.latency = cycles,
                Packet::Operation(MEMORY, details) => operation.store = details & STORE != 0,
                Packet::Events(events) => operation.events = events,
                Packet::DataSource(source) => operation.data_source = Some(source),
                Packet::Address(..)
                | Packet::Counter(..)
                | Packet::Context(_)
                | Packet::Operation(..) => {}
            }
            is_empty = false;
        }
    }
}

impl Operation {
    /// The cache levels that served it, in the bits that perf uses for all processors; 0 where unknown.
    #[must_use]
    pub fn levels(&self) -> u64 {
        let has = |bit| self.events & bit != 0;
        if has(event::LAST_LEVEL_MISS) {
            level::MISS | level::THIRD
        } else if has(event::LAST_LEVEL) {
            level::HIT | level::THIRD
        } else if has(event::FIRST_LEVEL) && !has(event::FIRST_LEVEL_MISS) {
            level::HIT | level::FIRST
        } else {
            0
        }
    }
}

/// An address without its top byte, which programs and the hardware use for tags. Kernel addresses,
/// whose upper bits are set, keep theirs.
const fn untagged(address: u64) -> u64 {
    match address & 1 << 55 {
        0 => address & ADDRESS_BITS,
        _ => address | !ADDRESS_BITS,
    }
}

/// Bits of an address packet that hold the address. The byte above them has a program's tag, or for a
/// physical address the bit of the secure world.
const ADDRESS_BITS: u64 = (1 << 56) - 1;

/// Passes the operations of a trace to `found` as samples; returns the number of bytes that were no
/// packet.
pub fn samples(trace: &AuxTrace, mut found: impl FnMut(PerfSample)) -> u64 {
    let mut operations = Operations::new(&trace.bytes);
    for operation in &mut operations {
        found(PerfSample {
            ip: operation.ip,
            pid: trace.origin.pid,
            tid: trace.origin.tid,
            time_ns: trace.origin.time_ns,
            cpu: trace.origin.cpu,
            address: operation.address,
            weight: u64::from(operation.latency),
            data_source: operation.levels() | if operation.store { STORE } else { 0 },
            physical: operation.physical.filter(|address| *address != 0),
            registers: Registers::NONE,
        });
    }
    operations.unknown()
}

#[cfg(test)]
mod tests;
