//! Tests the history of heat with epochs made by hand.

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Unit, UnitHeat};

use crate::json_line::JsonLine;

use super::{COLUMNS, HeatHistory, HeatMap, ROWS};

const UNIT: u64 = 2 << 20;
const SECOND: Nanos = Nanos(1_000_000_000);

fn process(pid: u32) -> Process {
    Process { pid, image: 0 }
}

fn heat(pid: u32, number: u64, hits: [u64; 2]) -> UnitHeat {
    UnitHeat {
        unit: Unit {
            process: process(pid),
            start: number * UNIT,
        },
        resident: Bytes(UNIT),
        fast: Bytes(if hits[1] > 5 { UNIT } else { 0 }),
        hits,
    }
}

fn push(history: &mut HeatHistory, epoch: u32, units: Vec<UnitHeat>) {
    let names = [(process(1), "<redis>"), (process(2), "sort")];
    history.push(Epoch(epoch), SECOND, Bytes(UNIT), names, units);
}

/// Two processes; the second comes later, and the hot unit of the first changes.
fn example() -> HeatMap {
    let mut history = HeatHistory::default();
    push(
        &mut history,
        0,
        vec![heat(1, 4, [100, 9]), heat(1, 5, [0, 0])],
    );
    push(
        &mut history,
        1,
        vec![heat(1, 4, [100, 0]), heat(1, 5, [1, 9]), heat(2, 0, [0, 3])],
    );
    history.map()
}

#[test]
fn hits_stand_at_their_time_and_place_by_kind() {
    let map = example();
    let places: Vec<(u32, u64)> = map
        .rows
        .iter()
        .map(|row| (row.pid, row.start / UNIT))
        .collect();
    assert_eq!(places, [(1, 4), (1, 5), (2, 0)]);
    assert_eq!(
        map.hits(ProfilingMethod::AccessedBits),
        [[100, 100], [0, 1], [0, 0]]
    );
    assert_eq!(
        map.hits(ProfilingMethod::TraceSamples),
        [[9, 0], [0, 9], [0, 3]]
    );
    assert_eq!(map.rows[1].fast_bytes, UNIT);
    assert_eq!(map.columns[1].epoch, 1);
}

#[test]
fn the_history_is_bounded_and_no_hit_is_lost_in_it() {
    let mut history = HeatHistory::default();
    for epoch in 0..COLUMNS as u32 + 10 {
        let units = (0..10_000).map(|number| heat(1, number, [1, 0]));
        push(&mut history, epoch, units.collect());
    }
    let map = history.map();
    assert_eq!((map.columns.len(), map.columns[0].epoch), (COLUMNS, 10));
    assert!(
        map.rows.len() <= ROWS && map.part_bytes == 128 * UNIT,
        "{}",
        map.part_bytes
    );
    let hits: u64 = map.accessed_bits.iter().flatten().sum();
    assert_eq!(hits, 10_000 * COLUMNS as u64);
    assert!(map.html().len() < 5_000_000);
    // More processes than rows: the biggest stay.
    let units = (0..500).map(|pid| UnitHeat {
        resident: Bytes(u64::from(pid)),
        ..heat(pid, 0, [1, 1])
    });
    push(&mut history, 999, units.collect());
    assert!(
        history
            .columns
            .back()
            .is_some_and(|column| column.cells.len() == ROWS)
    );
    assert!(history.names.len() <= 2);
    // And what was coarse for a while is fine again when that has passed.
    for epoch in 1000..1000 + COLUMNS as u32 {
        push(&mut history, epoch, vec![heat(1, 4, [1, 1])]);
    }
    assert_eq!(history.map().part_bytes, UNIT);
    assert!(HeatHistory::default().map().rows.is_empty());
}

#[test]
fn thousands_of_programs_that_come_and_go_take_no_more_rows_and_room_than_a_few() {
    let mut history = HeatHistory::default();
    push(&mut history, 0, vec![heat(1, 0, [1, 1])]);
    for epoch in 1..COLUMNS as u32 {
        let others = (0..ROWS as u32).map(|number| heat(1_000 * epoch + number, 0, [1, 1]));
        let stays = heat(1, 0, [9, 9]);
        push(
            &mut history,
            epoch,
            others.take(ROWS - 1).chain([stays]).collect(),
        );
    }
    let map = history.map();
    assert_eq!(map.rows.len(), ROWS);
    assert!(
        map.rows.iter().any(|row| row.pid == 1),
        "what was there all the time"
    );
    let cells: usize = history
        .columns
        .iter()
        .map(|column| size_of_val(&*column.cells))
        .sum();
    assert!(cells <= 750_000, "{cells} bytes");
}

#[test]
fn processes_that_have_ended_fill_no_rows() {
    let mut history = HeatHistory::default();
    for epoch in 0..COLUMNS as u32 - 1 {
        let ended = (100..100 + ROWS as u32).map(|pid| heat(pid, 0, [1, 1]));
        push(&mut history, epoch, ended.collect());
    }
    push(&mut history, COLUMNS as u32, vec![heat(1, 0, [0, 9])]);
    let map = history.map();
    assert_eq!((map.rows.len(), map.rows[0].pid), (1, 1));
    assert_eq!(map.processes_left_out, ROWS as u64);
    let text = map.text(100);
    assert!(
        text.contains("128 processes of these epochs are not shown"),
        "{text}"
    );
    // And when none is left, that is said.
    push(&mut history, COLUMNS as u32 + 1, vec![]);
    let text = history.map().text(100);
    assert!(text.contains("129 processes"), "{text}");
}

#[test]
fn the_terminal_shows_both_kinds_and_their_distribution() {
    let text = example().text(100);
    for part in [
        "accessed-bits",
        "trace-samples",
        "<redis>",
        "800000",
        "█",
        "100 %",
        "-2.00 s",
        "now",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
    let small = example().lines(ProfilingMethod::TraceSamples, 60, 2);
    assert_eq!(small.lines().count(), 4, "{small}");
    assert!(HeatMap::default().text(80).contains("Nothing was seen yet"));
}

#[test]
fn the_page_has_charts_and_escapes_names() {
    let page = example().html();
    assert_eq!(page.matches("class=\"chart\"").count(), 3);
    assert_eq!(page.matches("\"kind\":").count(), 3);
    assert!(
        page.contains("&lt;redis&gt;") && !page.contains("<redis>"),
        "{page}"
    );
    assert!(
        !page.contains("http://")
            || page.matches("http://").count() == page.matches("http://www.w3.org").count()
    );
    assert!(HeatMap::default().html().contains("Nothing was seen"));
}

#[test]
fn a_line_of_json_is_read_back_and_a_crooked_one_is_refused() {
    let map = example();
    assert_eq!(HeatMap::from_json_line(&map.json_line()), Ok(map.clone()));
    let newer = HeatMap {
        version: HeatMap::VERSION + 1,
        ..map.clone()
    };
    assert!(
        HeatMap::from_json_line(&newer.json_line())
            .unwrap_err()
            .contains("restart")
    );
    let mut crooked = map;
    crooked.trace_samples[1].pop();
    assert!(
        HeatMap::from_json_line(&crooked.json_line())
            .unwrap_err()
            .contains("lengths")
    );
}

#[test]
fn distributions_count_what_is_resident_hottest_first() {
    let curve = example().distribution(ProfilingMethod::TraceSamples);
    assert_eq!(curve.bytes(), Bytes(3 * UNIT));
    // 9, 9 and 3 of 21.
    assert!((curve.share_at(Bytes(UNIT)) - 9.0 / 21.0).abs() < 1e-9);
}
