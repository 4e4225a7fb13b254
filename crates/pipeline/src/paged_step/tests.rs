//! Tests the step on a modelled program: pages leave, and come back when they are touched.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::{Epoch, ObservedAccess, Process};
use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::paged::{
    IN_MEMORY, LimitedGroup, PAGED_OUT, PagedObservation, PagedUnit, RefaultCosts,
};
use isotherm_model::port::RangeExecutor;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Observation, Unit, Watched};
use isotherm_policy::epoch::{MoveCosts, Payback};
use proptest::prelude::*;

use super::{PagedConfig, PagedLimits, PagedReport, PagedStep, SavingRule};

const PAGE: u64 = 4096;
const PAGES: u64 = 16;
const UNIT: u64 = PAGES * PAGE;
const COSTS: RefaultCosts = RefaultCosts {
    out: Nanos(12_000),
    back: Nanos(8_000),
};
const EPOCH: Nanos = Nanos(100_000_000);

/// A program of small pages. Sets hold numbers of pages.
#[derive(Default)]
struct Program {
    units: u64,
    out: BTreeSet<u64>,
    returned: BTreeSet<u64>,
    /// Units that the kernel never pages out.
    locked: BTreeSet<u64>,
    /// Times that all of a unit left.
    paged_out: BTreeMap<u64, u32>,
    has_huge: bool,
}

impl Program {
    fn of(units: u64) -> Self {
        Self {
            units,
            ..Self::default()
        }
    }

    fn process() -> Process {
        Process { pid: 7, image: 0 }
    }

    fn touch(&mut self, page: u64) {
        if self.out.remove(&page) {
            self.returned.insert(page);
        }
    }

    fn pages_of(unit: u64) -> std::ops::Range<u64> {
        unit * PAGES..(unit + 1) * PAGES
    }

    /// The units of which most pages are out.
    fn units_out(&self) -> BTreeSet<u64> {
        let is_out = |unit: &u64| 2 * count(&self.out, *unit) > PAGES;
        (0..self.units).filter(is_out).collect()
    }

    /// The observation of an epoch in which all pages of these units were touched.
    fn observe(&mut self, epoch: u32, touched: &[u64]) -> PagedObservation {
        let pages = touched.iter().flat_map(|unit| Self::pages_of(*unit));
        self.observe_pages(epoch, &pages.collect::<Vec<u64>>())
    }

    /// Samples fall on one of the touched pages of a unit that are in memory.
    fn observe_pages(&mut self, epoch: u32, touched: &[u64]) -> PagedObservation {
        let in_memory = touched.iter().filter(|page| !self.out.contains(page));
        let sampled: BTreeMap<u64, u64> = in_memory.map(|page| (page / PAGES, *page)).collect();
        touched.iter().for_each(|page| self.touch(*page));
        let source = SourceKind::Timer;
        let sample = |page: &u64| {
            ObservedAccess::at(
                (Self::process(), page * PAGE + 8),
                source,
                (1, source.unit(false)),
            )
        };
        let returned = std::mem::take(&mut self.returned);
        let units = (0..self.units).map(|unit| PagedUnit {
            unit: Unit {
                process: Self::process(),
                start: unit * UNIT,
            },
            present: Bytes((PAGES - count(&self.out, unit)) * PAGE),
            out: Bytes(count(&self.out, unit) * PAGE),
            returned: Bytes(count(&returned, unit) * PAGE),
            grain: Bytes(UNIT),
            has_huge: self.has_huge,
        });
        PagedObservation {
            units: units.collect(),
            stalled: None,
            groups: Vec::new(),
            seen: Observation {
                epoch: Epoch(epoch),
                span: EPOCH,
                processes: vec![Watched {
                    process: Self::process(),
                    name: "app".into(),
                    control_group: String::new(),
                    warning: String::new(),
                }],
                accesses: sampled.values().map(sample).collect(),
                ..Observation::default()
            },
        }
    }
}

fn count(pages: &BTreeSet<u64>, unit: u64) -> u64 {
    pages.range(Program::pages_of(unit)).count() as u64
}

impl RangeExecutor for Program {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let mut outcome = RangeOutcome::begin(action);
        for page in action.range.start / PAGE..action.range.end() / PAGE {
            let unit = page / PAGES;
            let fate = match action.node == PAGED_OUT {
                _ if unit >= self.units => Fate::NotAttempted(Reason::NotTouched),
                true if self.locked.contains(&unit) => Fate::Denied("locked".into()),
                true if self.out.insert(page) => {
                    let all = count(&self.out, unit) == PAGES;
                    *self.paged_out.entry(unit).or_default() += u32::from(all);
                    Fate::Moved
                }
                false if self.out.remove(&page) => Fate::Moved,
                _ => Fate::AlreadyThere,
            };
            outcome.push(Bytes(PAGE), fate);
        }
        outcome
    }
}

fn step(slowdown: f64) -> PagedStep {
    let config = PagedConfig {
        unit: Bytes(UNIT),
        page: Bytes(PAGE),
        costs: COSTS,
        slowdown,
        rule: SavingRule::Probes,
        modelled: false,
    };
    let costs = MoveCosts {
        saved: Nanos(20_000),
        moved_page: Nanos(16 * 10_000),
    };
    PagedStep::new(config, Box::new(move || Box::new(Payback::new(costs))))
}

fn limits(units: u64) -> PagedLimits {
    PagedLimits {
        keep: Bytes(units * UNIT),
        most: Bytes(u64::MAX),
        moves: Bytes(u64::MAX),
        groups: BTreeMap::new(),
        fair_start: 0,
    }
}

/// Runs epochs, in each of which these units are touched.
fn follow(
    step: &mut PagedStep,
    program: &mut Program,
    fast: u64,
    epochs: std::ops::Range<u32>,
    touched: impl Fn(u32) -> Vec<u64>,
) -> Vec<PagedReport> {
    let run = |epoch| {
        let seen = program.observe(epoch, &touched(epoch));
        step.run(&seen, &limits(fast), program)
    };
    epochs.map(run).collect()
}

#[test]
fn the_cold_half_leaves_under_a_limit_and_the_hot_half_stays() {
    let mut program = Program::of(20);
    let hot = |_| (0..10).collect();
    // A sixteenth is for what comes back.
    let reports = follow(&mut step(1.0), &mut program, 11, 0..20, hot);
    assert!(program.units_out().is_subset(&(10..20).collect()));
    assert!(program.units_out().len() >= 9);
    assert!(
        reports[10..]
            .iter()
            .all(|report| report.returned <= Bytes(UNIT))
    );
    assert_eq!(reports[19].out, Bytes(10 * UNIT));
}

#[test]
fn under_a_budget_only_idle_units_leave_and_a_hot_program_keeps_everything() {
    let mut program = Program::of(20);
    let all = |_| (0..20).collect();
    follow(&mut step(0.02), &mut program, 0, 0..40, all);
    assert!(program.units_out().is_empty(), "{:?}", program.out);
    let part = |_| (0..5).collect();
    follow(&mut step(0.02), &mut program, 0, 0..40, part);
    assert_eq!(program.units_out(), (5..20).collect());
}

#[test]
fn under_a_budget_a_size_in_memory_stays() {
    let mut program = Program::of(20);
    follow(&mut step(0.02), &mut program, 12, 0..100, |_| vec![0]);
    let out = program.out.len() as u64;
    assert!((7 * PAGES..=8 * PAGES).contains(&out), "{out} pages");
}

#[test]
fn the_hot_pages_of_cold_units_stay() {
    let mut program = Program::of(20);
    let mut step = step(0.02);
    let mut late = 0;
    for epoch in 0..200 {
        // One page of each unit is hot.
        let hot: Vec<u64> = (0..20).map(|unit| unit * PAGES + 3).collect();
        let seen = program.observe_pages(epoch, &hot);
        let report = step.run(&seen, &limits(0), &mut program);
        late += if epoch < 100 { 0 } else { report.returned.0 };
    }
    assert_eq!(program.units_out().len(), 20);
    assert_eq!(late, 0, "bytes that returned later");
}

#[test]
fn a_slow_scan_under_a_budget_stays_and_cold_memory_leaves() {
    // A scan of 40 units, one an epoch; 20 others are cold. Not one sample falls on the scan.
    let mut program = Program::of(60);
    let mut step = step(0.02);
    let mut returned = 0;
    for epoch in 0..400 {
        let touched: Vec<u64> = Program::pages_of(u64::from(epoch) % 40).collect();
        let mut seen = program.observe_pages(epoch, &touched);
        seen.seen.accesses.clear();
        let report = step.run(&seen, &limits(0), &mut program);
        returned += report.returned.0 / PAGE;
    }
    let out = program.units_out();
    assert!((40..60).all(|cold| out.contains(&cold)), "{out:?}");
    assert!(returned < 800, "{returned} of 6,400 pages");
}

#[test]
fn by_the_rule_of_pressure_least_recently_used_units_leave_until_the_program_waits() {
    let mut program = Program::of(40);
    let mut step = step(0.02);
    step.config.rule = SavingRule::Pressure;
    let hot = |_| (0..10).collect();
    let reports = follow(&mut step, &mut program, 0, 0..200, hot);
    let returned: u64 = reports.iter().map(|report| report.returned.0 / PAGE).sum();
    assert!(returned > 0, "the rule finds the hot units by their return");
    let out = program.units_out();
    assert!((10..40).all(|cold| out.contains(&cold)), "{out:?}");
    let all = |_| (0..40).collect();
    let reports = follow(&mut step, &mut program, 0, 200..201, all);
    assert_eq!(reports[0].left, Bytes(0), "while all came back");
}

#[test]
fn huge_pages_leave_without_probes() {
    let mut program = Program::of(20);
    program.has_huge = true;
    let part = |_| (0..5).collect();
    follow(&mut step(0.02), &mut program, 0, 0..4, part);
    assert!(program.out.is_empty(), "no single page leaves");
    follow(&mut step(0.02), &mut program, 0, 4..60, part);
    assert_eq!(program.units_out(), (5..20).collect());
}

#[test]
fn a_change_of_phase_recalls_what_the_next_ones_need() {
    // Four sets of 10 units, each of which is hot for 2.5 s.
    let mut program = Program::of(40);
    let mut step = step(0.02);
    let phase = |epoch: u32| {
        let first = u64::from(epoch / 25) * 10;
        (first..first + 10).collect()
    };
    let first = follow(&mut step, &mut program, 0, 0..25, phase);
    assert!(first[24].out >= Bytes(25 * UNIT), "three sets rest");
    let change = follow(&mut step, &mut program, 0, 25..27, phase);
    let brought: Bytes = change.iter().map(|report| report.brought_back).sum();
    assert!(
        brought >= Bytes(15 * UNIT),
        "two sets come back ahead: {brought}"
    );
    let later = follow(&mut step, &mut program, 0, 27..100, phase);
    let returned: u64 = later.iter().map(|report| report.returned.0 / PAGE).sum();
    assert!(returned <= 80, "{returned} pages, of which 40 are probes");
}

/// Has time for this number of ranges that come back.
struct Hurried<'a>(&'a mut Program, u32);

impl RangeExecutor for Hurried<'_> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let is_late = action.node == IN_MEMORY && self.1 == 0;
        self.1 = self.1.saturating_sub(u32::from(action.node == IN_MEMORY));
        match is_late {
            true => RangeOutcome::whole(action, Fate::NotAttempted(Reason::OutOfTime)),
            false => self.0.carry_out(action),
        }
    }
}

#[test]
fn what_there_was_no_time_for_comes_back_in_the_next_epoch_or_before() {
    let mut program = Program::of(20);
    let mut step = step(0.02);
    let hot: Vec<u64> = (0..10).collect();
    follow(&mut step, &mut program, 0, 0..10, |_| hot.clone());
    assert_eq!(program.units_out(), (10..20).collect());
    // Half of three units that are not neighbours returns.
    let touched = [11, 13, 15].map(|unit| Program::pages_of(unit).take(8));
    let touched: Vec<u64> = touched.into_iter().flatten().collect();
    let out = |program: &Program| [11, 13, 15].map(|unit| count(&program.out, unit));
    for (epoch, touched) in [(10, &touched[..]), (11, &[])] {
        let seen = program.observe_pages(epoch, touched);
        step.run(&seen, &limits(0), &mut Hurried(&mut program, 1));
        let left = [[0, 8, 8], [0, 0, 8]];
        assert_eq!(out(&program), left[epoch as usize - 10]);
    }
    assert!(step.has_late_units());
    let came = step.bring_back_late(&mut Hurried(&mut program, 1));
    assert_eq!((out(&program), came), ([0, 0, 0], Bytes(8 * PAGE)));
}

#[test]
fn a_mistake_is_undone_at_once_and_remembered() {
    let mut program = Program::of(8);
    let mut step = step(0.5);
    // Unit 7 rests for 24 epochs, is touched in one, and rests again.
    let touched = |epoch: u32| match epoch % 25 {
        24 => (0..8).collect(),
        _ => (0..7).collect(),
    };
    let reports = follow(&mut step, &mut program, 0, 0..500, touched);
    let mistakes: u64 = reports.iter().map(|report| report.mistakes).sum();
    assert!(mistakes >= 1);
    let count = program.paged_out[&7];
    assert!(count < 8, "{count} times, and 20 without memory of it");
}

#[test]
fn a_scan_of_more_than_fits_keeps_a_fixed_part() {
    // 4 hot units, and a scan of 40 others, 4 an epoch; 24 fit. Samples fall on the hot units only, or nowhere.
    for has_samples in [true, false] {
        let mut program = Program::of(44);
        let mut step = step(1.0);
        let mut returned = 0;
        for epoch in 0..400_u32 {
            let scan = (0..4).map(|next| 4 + (u64::from(epoch) * 4 + next) % 40);
            let touched: Vec<u64> = (0..4).chain(scan).collect();
            let mut seen = program.observe(epoch, &touched);
            let is_seen = |access: &ObservedAccess| has_samples && access.address < 4 * UNIT;
            seen.seen.accesses.retain(is_seen);
            let report = step.run(&seen, &limits(24), &mut program);
            returned += if epoch < 200 {
                0
            } else {
                report.returned.0 / PAGE
            };
        }
        // 800 units are scanned. A least-recently-used rule misses all of them; 20 of 40 could be kept.
        let units = returned / PAGES;
        assert!(units < 520, "{units} of 800 came back");
        let out = program.units_out();
        assert!((0..4).all(|hot| !out.contains(&hot)), "{out:?}");
    }
}

#[test]
fn after_the_kernel_chose_its_choice_is_kept_and_what_returns_is_no_mistake() {
    let mut program = Program::of(20);
    let mut step = step(1.0);
    program.out = (10 * PAGES..20 * PAGES).collect();
    let units_out = |step: &PagedStep| {
        step.records
            .values()
            .filter(|it| it.out_since.is_some())
            .count()
    };
    for epoch in 0..40 {
        let report = step.watch(&program.observe(epoch, &[0, 1]));
        assert_eq!(report.out, Bytes(10 * UNIT));
        assert_eq!((report.left, report.mistakes), (Bytes::ZERO, 0));
    }
    assert_eq!(units_out(&step), 10);
    let back = step.watch(&program.observe(40, &[0, 1, 10]));
    assert_eq!(back.returned, Bytes(UNIT));
    assert!(back.stalled >= Nanos(PAGES * COSTS.back.0));
    assert_eq!(units_out(&step), 9);
    let seen = program.observe(41, &[0, 11]);
    let report = step.run(&seen, &limits(12), &mut program);
    assert_eq!(report.mistakes, 0, "it has been out since long ago");
}

#[test]
fn what_cannot_leave_stays_and_the_rest_leaves() {
    let mut program = Program::of(20);
    program.locked = (10..20).collect();
    let mut step = step(1.0);
    let hot = |_| (0..5).collect();
    follow(&mut step, &mut program, 16, 0..40, hot);
    assert_eq!(
        program.units_out(),
        (5..10).collect(),
        "6 may stay beside the locked ones, less what is kept for what comes back"
    );
}

#[test]
fn the_report_counts_the_swapped_bytes_of_units_too_small_to_move_as_swapped() {
    let mut program = Program::of(1);
    let mut seen = program.observe(0, &[]);
    let small = &mut seen.units[0];
    small.present = Bytes::ZERO;
    small.out = Bytes(PAGE);
    let mut step = step(0.02);
    let report = step.run(&seen, &limits(1), &mut program);
    assert_eq!((report.present, report.out), (Bytes::ZERO, Bytes(PAGE)));
}

#[test]
fn what_exceeds_the_most_leaves_whatever_the_budget() {
    let mut program = Program::of(20);
    let mut step = step(0.01);
    let all: Vec<u64> = (0..20).collect();
    for epoch in 0..5 {
        let seen = program.observe(epoch, &all);
        let most = Bytes(15 * UNIT);
        step.run(&seen, &PagedLimits { most, ..limits(0) }, &mut program);
    }
    assert!(program.units_out().len() >= 5, "{:?}", program.out);
}

/// Puts the program into a control group with a limit of `units` units, alone or beside a watched process in another one.
fn in_group(seen: &mut PagedObservation, units: u64, is_alone: bool) {
    seen.groups.push(LimitedGroup {
        name: "/app".to_owned(),
        directory: "/sys/fs/cgroup/app".into(),
        limit: Bytes(units * UNIT),
        without_files: seen.units.iter().map(|held| held.present).sum(),
        processes: [Program::process()].into(),
    });
    if !is_alone {
        let mut other = seen.seen.processes[0].clone();
        other.process.pid = 8;
        seen.seen.processes.push(other);
    }
}

#[test]
fn cold_units_of_a_group_leave_before_it_reaches_its_limit_whatever_the_budget() {
    for is_alone in [true, false] {
        let mut program = Program::of(32);
        let mut step = step(0.02);
        let hot: Vec<u64> = (0..8).collect();
        for epoch in 0..30 {
            let mut seen = program.observe(epoch, &hot);
            in_group(&mut seen, 32, is_alone);
            // A size that stays keeps the budget from paging anything out.
            step.run(&seen, &limits(32), &mut program);
        }
        let out = program.units_out();
        assert!(out.is_subset(&(8..32).collect()), "{out:?}");
        assert!((2..=5).contains(&out.len()), "{is_alone}: {out:?}");
    }
}

#[test]
fn nothing_is_brought_back_to_a_group_that_is_near_its_limit() {
    for (limit, left) in [(30, 0), (16, 8)] {
        let mut program = Program::of(20);
        let mut step = step(0.02);
        follow(&mut step, &mut program, 0, 0..10, |_| (0..10).collect());
        assert_eq!(program.units_out(), (10..20).collect());
        let half: Vec<u64> = (10..20)
            .flat_map(|unit| Program::pages_of(unit).take(8))
            .collect();
        let mut seen = program.observe_pages(10, &half);
        in_group(&mut seen, limit, false);
        step.run(&seen, &limits(0), &mut program);
        assert_eq!(count(&program.out, 10), left, "of a limit of {limit} units");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Whatever is touched: the loss keeps to the budget, but for what was out when everything came back.
    #[test]
    fn the_loss_keeps_to_the_budget(
        slowdown in 0.01_f64..0.2,
        phases in proptest::collection::vec((0_u64..30, 1_u64..30), 1..12),
    ) {
        let mut program = Program::of(30);
        let mut step = step(slowdown);
        let touched = |epoch: u32| {
            let (first, count) = phases[(epoch / 25) as usize % phases.len()];
            (first..(first + count).min(30)).collect()
        };
        let reports = follow(&mut step, &mut program, 0, 0..200, touched);
        let lost: u64 = reports.iter().map(|report| report.stalled.0).sum();
        let at_once = 30 * UNIT / PAGE * COSTS.back.0;
        let allowed = slowdown * (200.0 * EPOCH.0 as f64 + 1e9) + at_once as f64;
        prop_assert!(lost as f64 <= allowed, "{} of {}", lost, allowed);
    }
}
