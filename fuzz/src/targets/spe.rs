//! What Arm's statistical profiling extension writes: any bytes at all.

use isotherm_observe::source::spe::{Operations, Packet, Packets};

use super::seeds::Seeds;

pub(crate) fn check(data: &[u8]) -> bool {
    let mut packets = Packets::new(data);
    let (mut count, mut ends) = (0_u64, 0);
    for packet in packets.by_ref() {
        count += 1;
        ends += usize::from(matches!(packet, Packet::End | Packet::Timestamp(_)));
    }
    assert!(count + packets.unknown() <= data.len() as u64);
    let mut operations = Operations::new(data);
    let found = operations.by_ref().count();
    assert!(found <= ends, "an operation ends with a packet of its own");
    assert_eq!(operations.unknown(), packets.unknown());
    found > 0
}

/// A load that missed all caches, with its physical address, a store, and padding.
pub(crate) fn seeds() -> Seeds {
    let address = |index: u8, value: u64| [&[0xb0 | index], &value.to_le_bytes()[..]].concat();
    let load = [
        address(0, 0xaaaa_0000_1234),
        vec![
            0x65, 0x67, 0x12, 0, 0, 0x49, 0, 0x52, 0x0e, 0x03, 0x98, 0x38, 0x01,
        ],
        address(2, 0x5a00_ffff_1234_5678),
        address(3, 1 << 63 | 0x12_3456_7678),
        vec![0x43, 0x0e, 0x71, 77, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    let store = [vec![0x49, 1], address(2, 0xffff_0000_1000), vec![0x01]].concat();
    let both = [load.clone(), vec![0; 7], store.clone(), load.clone()].concat();
    vec![("load", load), ("store", store), ("both", both)]
}
