//! Tests of the packets of SPE, as the manual lays them out, and of the samples that they become.

use super::{Operation, Operations, Packet, Packets, event, samples};
use isotherm_sys::perf::aux::AuxTrace;
use isotherm_sys::perf::record::RecordOrigin;

/// A packet as the manual lays it out: a header and its payload, lowest byte first.
fn packet(header: u8, payload: &[u8]) -> Vec<u8> {
    [&[header], payload].concat()
}

fn address(index: u8, value: u64) -> Vec<u8> {
    packet(0xb0 | index, &value.to_le_bytes())
}

fn counter(index: u8, cycles: u16) -> Vec<u8> {
    packet(0x98 | index, &cycles.to_le_bytes())
}

fn timestamp(ticks: u64) -> Vec<u8> {
    packet(0x71, &ticks.to_le_bytes())
}

/// A load that missed all caches, with all packets that a processor writes of it.
fn load() -> Vec<u8> {
    [
        address(0, 0x0000_aaaa_0000_1234),
        packet(0x65, &4711_u32.to_le_bytes()),
        packet(0x49, &[0]),
        packet(
            0x52,
            &(1_u16 << 9 | 1 << 8 | 1 << 3 | 1 << 2 | 2).to_le_bytes(),
        ),
        counter(1, 4),
        counter(0, 312),
        address(2, 0x5a00_ffff_1234_5678),
        // The top bit: not in the secure world.
        address(3, 1 << 63 | 0x0000_0012_3456_7678),
        counter(2, 9),
        packet(0x43, &[0x0e]),
        timestamp(77),
    ]
    .concat()
}

#[test]
fn every_packet_of_the_manual_is_told_by_its_header() {
    let bytes = [
        load(),
        vec![0x00, 0x01],
        // An index of more than three bits has a prefix byte.
        packet(0x21, &counter(3, 8)),
        packet(0x62, &5_u32.to_le_bytes()),
        packet(0x72, &6_u64.to_le_bytes()),
        packet(0x53, &7_u16.to_le_bytes()),
        packet(0x4a, &[9]),
    ]
    .concat();
    let mut packets = Packets::new(&bytes);
    let found: Vec<Packet> = packets.by_ref().collect();
    let expected = [
        Packet::Address(0, 0x0000_aaaa_0000_1234),
        Packet::Context(4711),
        Packet::Operation(1, 0),
        Packet::Events(0x30e),
        Packet::Counter(1, 4),
        Packet::Counter(0, 312),
        Packet::Address(2, 0x5a00_ffff_1234_5678),
        Packet::Address(3, 1 << 63 | 0x0000_0012_3456_7678),
        Packet::Counter(2, 9),
        Packet::DataSource(0x0e),
        Packet::Timestamp(77),
        Packet::Padding,
        Packet::End,
        Packet::Counter(11, 8),
        Packet::Events(5),
        Packet::Events(6),
        Packet::DataSource(7),
        Packet::Operation(2, 9),
    ];
    assert_eq!(found, expected);
    assert_eq!(packets.unknown(), 0);
}

#[test]
fn packets_become_operations_and_tags_are_no_part_of_an_address() {
    let store = [
        packet(0x49, &[1]),
        address(2, 0xffff_8000_0000_1000),
        vec![0x01],
    ]
    .concat();
    let branch = [packet(0x4a, &[1]), address(1, 9), vec![0x01]].concat();
    let torn = address(2, 5);
    let bytes = [load(), vec![0; 5], store, branch, vec![0x01], torn].concat();
    let mut operations = Operations::new(&bytes);
    let found: Vec<Operation> = operations.by_ref().collect();
    let load = Operation {
        address: 0x0000_ffff_1234_5678,
        physical: Some(0x0000_0012_3456_7678),
        ip: 0xaaaa_0000_1234,
        latency: 312,
        store: false,
        events: 0x30e,
        data_source: Some(0x0e),
    };
    assert_eq!(found[0], load);
    assert_eq!(
        (found[1].store, found[1].address, found[1].physical),
        (true, 0xffff_8000_0000_1000, None)
    );
    assert_eq!(found[2], Operation::default(), "a branch has no data");
    assert_eq!(found.len(), 3, "what does not end is none");
    assert_eq!(operations.unknown(), 0);
}

#[test]
fn events_say_which_cache_served_it() {
    let stays = |events: u64| {
        let bytes = [
            packet(0x72, &events.to_le_bytes()),
            address(2, 8),
            address(3, 0x4000),
            vec![0x01],
        ]
        .concat();
        let trace = AuxTrace {
            origin: RecordOrigin {
                pid: 7,
                cpu: 3,
                ..RecordOrigin::default()
            },
            bytes,
            ..AuxTrace::default()
        };
        let mut found = Vec::new();
        assert_eq!(samples(&trace, |sample| found.push(sample)), 0);
        assert_eq!(
            (found.len(), found[0].pid, found[0].cpu, found[0].address),
            (1, 7, 3, 8)
        );
        assert_eq!(found[0].physical, Some(0x4000));
        found[0].hit_a_cache()
    };
    assert!(stays(event::FIRST_LEVEL));
    assert!(!stays(0), "not known");
    assert!(!stays(event::FIRST_LEVEL | event::FIRST_LEVEL_MISS));
    assert!(stays(
        event::FIRST_LEVEL | event::FIRST_LEVEL_MISS | event::LAST_LEVEL
    ));
    assert!(!stays(event::LAST_LEVEL | event::LAST_LEVEL_MISS));
}

#[test]
fn what_is_no_packet_is_passed_over_and_counted() {
    let bytes = [vec![0xff, 0x03, 0xe0], load()].concat();
    let mut operations = Operations::new(&bytes);
    assert_eq!(operations.by_ref().count(), 1);
    assert_eq!(operations.unknown(), 3);
    let torn = &load()[..12];
    let mut packets = Packets::new(torn);
    assert_eq!(packets.by_ref().count(), 1);
    assert_eq!(packets.unknown(), 3, "a header and two bytes of four");
    assert_eq!(Packets::new(&[0x20]).next(), None);
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_walk_panic_or_run_forever(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2048),
    ) {
        let mut packets = Packets::new(&bytes);
        let count = packets.by_ref().count() as u64;
        proptest::prop_assert!(count + packets.unknown() <= bytes.len() as u64);
        proptest::prop_assert!(Operations::new(&bytes).count() <= bytes.len());
    }

    #[test]
    fn operations_are_found_again_behind_padding_and_torn_ones(
        before in proptest::collection::vec(proptest::sample::select(vec![0x00_u8, 0x01, 0xff]), 0..40),
        addresses in proptest::collection::vec(0_u64..1 << 48, 0..30),
    ) {
        let loads = addresses.iter().flat_map(|at| [address(2, *at), counter(0, 9), timestamp(1)].concat());
        let bytes: Vec<u8> = before.iter().copied().chain(loads).collect();
        let found: Vec<u64> = Operations::new(&bytes).map(|one| one.address).collect();
        proptest::prop_assert_eq!(found, addresses);
    }
}
