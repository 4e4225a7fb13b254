//! What Arm's statistical profiling extension writes, taken apart.
//!
//! The extension follows one operation in so many through the core and writes a record of packets about
//! it into memory. A packet is a byte that says what it is and how long, and 1, 2, 4 or 8 bytes, lowest
//! first; a record ends with an end or a timestamp packet.
//!
//! ```text
//! b2 | 8 bytes   data address, virtual       42 | 1..8 bytes   events: what it missed
//! b3 | 8 bytes   data address, physical      43 | 1..8 bytes   where the data came from
//! b0 | 8 bytes   instruction address         49 | 1 byte       load or store
//! 98 | 2 bytes   cycles it took in all       71 | 8 bytes      timestamp
//! 65 | 4 bytes   context (process)           00                padding
//! 01             end
//! ```
//!
//! The bytes come from hardware through a shared buffer (and from a fuzzer): what is no packet is passed
//! over byte by byte and counted.
//!
//! Format: Arm Architecture Reference Manual for A-profile (DDI 0487), chapter D17, "Statistical Profiling
//! Extension sample record specification". It has been tested on bytes that the tests build by that
//! chapter, and on no processor.

use isotherm_sys::perf::aux::AuxTrace;
use isotherm_sys::perf::record::{PerfSample, Registers, level};

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Nothing.
    Padding,
    /// The record ends.
    End,
    /// The record ends, and when: ticks of the generic timer.
    Timestamp(u64),
    /// An address, and of what: 0 the instruction, 1 a branch's target, 2 virtual and 3 physical data, 4 the
    /// target of the branch before.
    Address(u8, u64),
    /// Cycles, and of what: 0 in all, 1 until issued, 2 until translated.
    Counter(u8, u16),
    /// `CONTEXTIDR`, which is the thread on a kernel with `CONFIG_PID_IN_CONTEXTIDR`.
    Context(u32),
    /// Class and details of the operation.
    Operation(u8, u8),
    /// Bits of what happened.
    Events(u64),
    /// Where the data came from, by the processor's own numbers.
    DataSource(u64),
}

/// Walks the packets in `bytes`.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    bytes: &'a [u8],
    unknown: u64,
}

impl<'a> Packets<'a> {
    /// Packets from the beginning of one on.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, unknown: 0 }
    }

    /// Bytes passed over so far because they are no packet, those of a torn last one included.
    #[must_use]
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    /// The payload that a header announces.
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
            // A header in front of the header has the upper bits of an index that is larger than 7.
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

/// What is known of one operation.
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
    /// Bits of what happened, by the names in [`event`].
    pub events: u64,
    /// Where its data came from, by the processor's own numbers.
    pub data_source: Option<u64>,
}

/// Bits of what happened to an operation.
pub mod event {
    /// It looked into the first level of data cache.
    pub const FIRST_LEVEL: u64 = 1 << 2;
    /// It missed there.
    pub const FIRST_LEVEL_MISS: u64 = 1 << 3;
    /// It looked into the last level of cache.
    pub const LAST_LEVEL: u64 = 1 << 8;
    /// It missed there.
    pub const LAST_LEVEL_MISS: u64 = 1 << 9;
}

/// Puts packets together to operations. What stands before the end of the bytes and has no end of its own
/// is dropped: it goes on in bytes that are not there.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    packets: Packets<'a>,
}

impl<'a> Operations<'a> {
    /// Operations from the beginning of one on.
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
        /// The class of loads, stores and atomic operations, and their bit that tells stores.
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
    /// Which caches served it, in the bits that perf uses for all processors; 0 where that is not known.
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

/// An address without the byte that programs and the hardware keep other things in. Those of the kernel,
/// whose upper bits are set, keep them.
const fn untagged(address: u64) -> u64 {
    match address & 1 << 55 {
        0 => address & ADDRESS_BITS,
        _ => address | !ADDRESS_BITS,
    }
}

/// Bits of an address packet that hold the address. The byte above them has a program's tag, or with a
/// physical address whether it is of the secure world.
const ADDRESS_BITS: u64 = (1 << 56) - 1;

/// The operations of a trace as samples, and how many of its bytes were none.
pub fn samples(trace: &AuxTrace, mut found: impl FnMut(PerfSample)) -> u64 {
    let mut operations = Operations::new(&trace.bytes);
    for operation in &mut operations {
        found(PerfSample {
            ip: operation.ip,
            pid: trace.pid,
            tid: trace.tid,
            time_ns: trace.time_ns,
            cpu: trace.cpu,
            address: operation.address,
            weight: u64::from(operation.latency),
            data_source: operation.levels(),
            physical: operation.physical.filter(|address| *address != 0),
            registers: Registers::NONE,
        });
    }
    operations.unknown()
}

#[cfg(test)]
mod tests;
