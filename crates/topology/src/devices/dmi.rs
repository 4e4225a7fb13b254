//! Reads the DIMMs of the firmware's table: structures of type 17, "Memory Device" (SMBIOS specification, DSP0134, section 7.18).
//!
//! ```text
//! 0 type  1 length  2 handle | 0x0c size | 0x10 locator | 0x12 kind | 0x1b ranks | 0x1c size in MiB | strings, each ending in 0, then 0
//! ```

use std::io::ErrorKind;
use std::path::Path;

use isotherm_model::units::Bytes;

use super::device::{DeviceSource, MemoryDevice};

const TYPE: u8 = 17;
/// Most structures that are read: far above the slots of any machine.
const STRUCTURES_AT_MOST: u32 = 4096;
/// Most bytes of one that are read: it has less than a hundred and a few strings.
const BYTES_AT_MOST: u64 = 64 << 10;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Kinds of memory by their code.
const KINDS: [(u8, &str); 13] = [
    (0x13, "DDR2"),
    (0x18, "DDR3"),
    (0x1a, "DDR4"),
    (0x1b, "LPDDR"),
    (0x1c, "LPDDR2"),
    (0x1d, "LPDDR3"),
    (0x1e, "LPDDR4"),
    (0x1f, "non-volatile"),
    (0x20, "HBM"),
    (0x21, "HBM2"),
    (0x22, "DDR5"),
    (0x23, "LPDDR5"),
    (0x24, "HBM3"),
];

/// The DIMMs of the table, and whether it exists and may not be read.
pub(super) fn read(root: &Path) -> (Vec<MemoryDevice>, bool) {
    let entries = root.join("sys/firmware/dmi/entries");
    let mut devices = Vec::new();
    let mut refused = false;
    for number in 0..STRUCTURES_AT_MOST {
        match contents(&entries.join(format!("17-{number}/raw"))) {
            Ok(bytes) => devices.extend(dmi_device(&bytes)),
            Err(ErrorKind::PermissionDenied) => refused = true,
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => break,
            Err(_) => {}
        }
    }
    (devices, refused)
}

fn contents(path: &Path) -> Result<Vec<u8>, ErrorKind> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).map_err(|error| error.kind())?;
    let mut bytes = Vec::new();
    let read = file.take(BYTES_AT_MOST).read_to_end(&mut bytes);
    read.map_err(|error| error.kind())?;
    Ok(bytes)
}

/// The device of a structure of type 17; `None` for an empty slot, an unknown size, and bytes that are no such structure.
#[must_use]
pub fn dmi_device(bytes: &[u8]) -> Option<MemoryDevice> {
    let length = usize::from(*bytes.get(1)?);
    let fields = bytes.get(..length)?;
    if *fields.first()? != TYPE {
        return None;
    }
    let capacity = capacity(fields)?;
    let locator = string(bytes.get(length..)?, *fields.get(0x10)?);
    let bank = fields
        .get(0x11)
        .and_then(|number| string(bytes.get(length..)?, *number));
    let kind = fields.get(0x12).and_then(|code| {
        let known = KINDS.iter().find(|(known, _)| known == code);
        known.map(|(_, name)| (*name).to_owned())
    });
    let ranks = fields
        .get(0x1b)
        .map(|attributes| u32::from(attributes & 0xf));
    Some(MemoryDevice {
        name: locator.or(bank).unwrap_or_else(|| "unnamed".to_owned()),
        kind,
        capacity,
        ranks: ranks.filter(|ranks| *ranks > 0),
        node: None,
        source: DeviceSource::Dmi,
    })
}

/// 0 is an empty slot, 0xffff an unknown size, 0x7fff a size in the later field; bit 15 means KiB instead of MiB.
fn capacity(fields: &[u8]) -> Option<Bytes> {
    let word = u16::from_le_bytes(fields.get(0x0c..0x0e)?.try_into().ok()?);
    let bytes = match word {
        0 | 0xffff => return None,
        0x7fff => {
            let extended = u32::from_le_bytes(fields.get(0x1c..0x20)?.try_into().ok()?);
            u64::from(extended & 0x7fff_ffff) * MIB
        }
        word if word & 0x8000 != 0 => u64::from(word & 0x7fff) * KIB,
        word => u64::from(word) * MIB,
    };
    (bytes > 0).then_some(Bytes(bytes))
}

/// The string of this number, from 1, printable and without blanks around; `None` where it has none.
fn string(strings: &[u8], number: u8) -> Option<String> {
    let index = usize::from(number).checked_sub(1)?;
    let text = strings.split(|byte| *byte == 0).nth(index)?;
    let text: String = String::from_utf8_lossy(text)
        .chars()
        .filter(|c| !c.is_control())
        .collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
