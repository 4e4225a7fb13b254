//! A structure of the firmware's table of memory devices (SMBIOS type 17).

use super::seeds::Seeds;

pub(crate) fn check(data: &[u8]) -> bool {
    let Some(device) = isotherm_topology::dmi_device(data) else {
        return false;
    };
    assert!(device.capacity.0 > 0, "an empty slot is no device");
    assert!(!device.name.is_empty() && !device.name.contains(char::is_control));
    assert!(device.ranks.is_none_or(|ranks| (1..16).contains(&ranks)));
    true
}

/// A DIMM of 16 GiB, and one whose size is in the later field.
pub(crate) fn seeds() -> Seeds {
    let dimm = |size: u16, extended: u32| {
        let mut bytes = vec![0_u8; 0x28];
        bytes[0] = 17;
        bytes[1] = 0x28;
        bytes[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
        bytes[0x10] = 1;
        bytes[0x11] = 2;
        bytes[0x12] = 0x22;
        bytes[0x1b] = 2;
        bytes[0x1c..0x20].copy_from_slice(&extended.to_le_bytes());
        bytes.extend_from_slice(b"DIMM_A1\0BANK 0\0\0");
        bytes
    };
    vec![
        ("dimm", dimm(0x4000, 0)),
        ("extended", dimm(0x7fff, 131_072)),
    ]
}
