//! [`step`] decodes instructions that `yaxpeax-x86` 2.2 refuses, nearly all of vectors: most instructions with mask registers, some
//! gathers, scatters and shifts by a constant of AVX-512, later additions in VEX (dot products, finite fields, ciphers, compare and add),
//! and the extensions FMA4 and XOP. Loops of string functions and codecs consist of them: without their lengths, no access near is found.
//!
//! Not here: half precision (AVX512-FP16), whose displacements have a unit for each instruction.
//!
//! ```text
//! VEX   c5 R.vvvv.L.pp                                opcode modrm [sib] [displacement] [immediate]
//! VEX   c4 RXB.map  W.vvvv.L.pp                       opcode ...
//! XOP   8f RXB.map  W.vvvv.L.pp                       opcode ...
//! EVEX  62 RXBR.map W.vvvv.1.pp  z.LL.b.V.aaa         opcode ...       R, X, B, vvvv inverted
//! ```

use crate::instruction::{Flow, Index, Operand, Step};

use super::perf_number::perf_number;

/// The fields in front of the opcode.
#[derive(Clone, Copy, Default)]
struct Prefix {
    encoding: Encoding,
    map: u8,
    /// Highest bits of the three register numbers of modrm and sib: 0 or 8.
    register_high: u8,
    index_high: u8,
    base_high: u8,
    wide: bool,
    /// The register beside those of modrm.
    other: u8,
    /// Bytes of a vector; 0 where the displacement is not a multiple of it.
    vector_bytes: u8,
    broadcast: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Encoding {
    #[default]
    Vex,
    Xop,
    Evex,
}

/// Memory or a register, from modrm.
enum Place {
    Memory(Operand),
    Register(u8),
}

/// The bytes that are left.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn next_four(&mut self) -> Option<i32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_le_bytes(*first))
    }
}

/// The instruction at the start of `code`, if it is one of the vector instructions above.
pub(super) fn step(code: &[u8], address: u64) -> Option<Step> {
    let mut bytes = Bytes(code);
    let prefix = prefix(&mut bytes)?;
    let opcode = bytes.next()?;
    let immediate_bytes = immediate_bytes(prefix, opcode)?;
    let modrm = bytes.next()?;
    let place = place(prefix, opcode, modrm, &mut bytes)?;
    bytes.0 = bytes.0.get(immediate_bytes..)?;
    let length = code.len() - bytes.0.len();
    let register = modrm >> 3 & 7 | prefix.register_high;
    let written = written(prefix, opcode, register, &place);
    let operand = match place {
        // Relative to the next instruction, whose address is known only here.
        Place::Memory(operand) if modrm & 0xc7 == 5 => Some(Operand {
            displacement: address
                .wrapping_add(length as u64)
                .wrapping_add(operand.displacement),
            ..operand
        }),
        Place::Memory(operand) => Some(operand),
        Place::Register(_) => None,
    };
    Some(Step {
        length,
        operand,
        written,
        derivation: None,
        flow: Flow::Next,
    })
}

fn prefix(bytes: &mut Bytes<'_>) -> Option<Prefix> {
    let encoding = match bytes.next()? {
        0xc5 => {
            let only = bytes.next()?;
            return Some(Prefix {
                map: 1,
                register_high: high(only, 7),
                other: !only >> 3 & 15,
                ..Prefix::default()
            });
        }
        0xc4 => Encoding::Vex,
        0x8f => Encoding::Xop,
        0x62 => Encoding::Evex,
        _ => return None,
    };
    let (first, second) = (bytes.next()?, bytes.next()?);
    let third = match encoding {
        Encoding::Evex => bytes.next()?,
        Encoding::Vex | Encoding::Xop => 0,
    };
    let map_bits = if encoding == Encoding::Evex { 7 } else { 31 };
    Some(Prefix {
        encoding,
        map: first & map_bits,
        register_high: high(first, 7),
        index_high: high(first, 6),
        base_high: high(first, 5),
        wide: second & 0x80 != 0,
        other: !second >> 3 & 15,
        vector_bytes: match (encoding, third >> 5 & 3) {
            (Encoding::Evex, length @ 0..3) => 16 << length,
            (Encoding::Evex, _) => return None,
            _ => 0,
        },
        broadcast: third & 0x10 != 0,
    })
}

/// The highest bit of a register's number, from an inverted bit.
fn high(byte: u8, bit: u8) -> u8 {
    (!byte >> bit & 1) << 3
}

/// Bytes of the constant at the end; none for instructions that are not meant here.
fn immediate_bytes(prefix: Prefix, opcode: u8) -> Option<usize> {
    match (prefix.encoding, prefix.map, opcode) {
        // Mask registers: logic, moves, tests; shifts.
        (Encoding::Vex, 1, 0x41..=0x4b | 0x90..=0x93 | 0x98 | 0x99) => Some(0),
        (Encoding::Vex, 3, 0x30..=0x33) => Some(1),
        // Dot products, products of 52 bits, finite fields, hashes and ciphers.
        (Encoding::Vex, 2, 0x50..=0x53 | 0xb0 | 0xb1 | 0xb4 | 0xb5) => Some(0),
        (Encoding::Vex, 2, 0xcf | 0xd2 | 0xd3 | 0xda) => Some(0),
        (Encoding::Vex, 3, 0x44 | 0xce | 0xcf | 0xde) => Some(1),
        // Compare and add.
        (Encoding::Vex, 2, 0xe0..=0xef) => Some(0),
        // FMA4: the constant names the fourth register.
        (Encoding::Vex, 3, 0x48 | 0x49 | 0x5c..=0x5f | 0x68..=0x6f | 0x78..=0x7f) => Some(1),
        (Encoding::Xop, 8, _) => Some(1),
        (Encoding::Xop, 9, _) => Some(0),
        (Encoding::Xop, 10, _) => Some(4),
        // Shifts by a constant.
        (Encoding::Evex, 1, 0x71..=0x73) => Some(1),
        // Gathers and scatters.
        (Encoding::Evex, 2, 0x90..=0x93 | 0xa0..=0xa3) => Some(0),
        _ => None,
    }
}

/// General registers that the instruction writes, bit n for number n.
fn written(prefix: Prefix, opcode: u8, register: u8, place: &Place) -> u64 {
    let set = |encoded| perf_number(encoded).map_or(0, |number| 1 << number);
    match (prefix.encoding, prefix.map, opcode) {
        (Encoding::Vex, 1, 0x93) | (Encoding::Vex, 2, 0xe0..=0xef) => set(register),
        // Some have general registers: all that are named count.
        (Encoding::Xop, _, _) => {
            let named = match place {
                Place::Register(register) => set(*register),
                Place::Memory(_) => 0,
            };
            named | set(register) | set(prefix.other)
        }
        _ => 0,
    }
}

/// Whether the instruction computes an address for each element of a vector.
fn gathers(prefix: Prefix) -> bool {
    prefix.encoding == Encoding::Evex && prefix.map == 2
}

/// The memory or register that modrm names. A relative operand has the displacement alone.
fn place(prefix: Prefix, opcode: u8, modrm: u8, bytes: &mut Bytes<'_>) -> Option<Place> {
    let (mode, low) = (modrm >> 6, modrm & 7);
    if mode == 3 {
        return (!gathers(prefix)).then_some(Place::Register(low | prefix.base_high));
    }
    let sib = match low {
        4 => Some(bytes.next()?),
        _ => None,
    };
    let base = sib.unwrap_or(low) & 7;
    let displacement = match mode {
        0 if base == 5 => bytes.next_four()?,
        0 => 0,
        1 => i32::from(bytes.next()?.cast_signed()) * unit(prefix, opcode),
        _ => bytes.next_four()?,
    };
    let has_base = (mode, base) != (0, 5);
    Some(Place::Memory(Operand {
        base: perf_number(base | prefix.base_high).filter(|_| has_base),
        index: sib.and_then(|sib| index(prefix, sib)),
        displacement: i64::from(displacement).cast_unsigned(),
        narrow: false,
    }))
}

/// The index register of a sib byte. Of a gather or scatter, the base alone is known.
fn index(prefix: Prefix, sib: u8) -> Option<Index> {
    let encoded = sib >> 3 & 7 | prefix.index_high;
    // The number of the stack pointer means that there is none.
    let is_general = encoded != 4 && !gathers(prefix);
    let register = perf_number(encoded).filter(|_| is_general)?;
    Some(Index {
        shift: sib >> 6,
        ..Index::of(register)
    })
}

/// The unit of a displacement of one byte: in AVX-512, the bytes that are read at once.
fn unit(prefix: Prefix, opcode: u8) -> i32 {
    match (prefix.encoding, opcode) {
        (Encoding::Evex, _) if gathers(prefix) => 4 << i32::from(prefix.wide),
        (Encoding::Evex, 0x72 | 0x73) if prefix.broadcast => 4 << i32::from(prefix.wide),
        (Encoding::Evex, _) => i32::from(prefix.vector_bytes),
        _ => 1,
    }
}
