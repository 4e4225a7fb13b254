//! Tests the numbers printed in CoMerge (Doudali and Gavrilovska, MEMSYS 2017), tables 3 and 4 and section 4, from the times and sizes
//! alone, and where the paper's printed formula differs from its tables. Sizes count as in the paper: 1 GB is 1000 MB, and a program is as
//! large as its objects together (STREAM 1602 MB, not 1600).

use isotherm_model::units::{Bytes, Nanos};

use super::colocation::{
    Colocation, MeasuredObject, MeasuredProgram, SensitivityClass, SharedPlan,
};
use super::{Benefit, PaperPolicy, SharingPolicy};

const MEGABYTE: u64 = 1_000_000;
/// The times are printed to the hundredth of a second.
const HUNDREDTH: u64 = 10_000_000;

/// A row of table 3: object, time with only it fast, benefit, co-benefit, size in MB. A time is
/// in hundredths of a second.
type Row = (&'static str, u64, f64, f64, u64);

/// A part of table 3: program, F, S, its class in parentheses, its rows.
type Part = (&'static str, u64, u64, SensitivityClass, &'static [Row]);

const TABLE_3: [Part; 8] = [
    (
        "XSBench",
        3_537,
        11_317,
        SensitivityClass::High,
        &[
            ("nuclide", 4_258, 0.9, 2.7, 30),
            ("energy", 10_238, 0.14, 0.42, 970),
        ],
    ),
    (
        "CLOMP",
        4_930,
        16_220,
        SensitivityClass::High,
        &[
            ("parts", 16_010, 0.019, 0.057, 250),
            ("zones", 4_940, 0.99, 2.97, 1_250),
        ],
    ),
    (
        "STREAM",
        2_883,
        10_655,
        SensitivityClass::High,
        &[
            ("a", 7_538, 0.4, 1.2, 534),
            ("b", 7_553, 0.39, 1.17, 534),
            ("c", 6_119, 0.59, 1.77, 534),
        ],
    ),
    (
        "doitgen",
        2_945,
        3_069,
        SensitivityClass::None,
        &[
            ("C4", 2_968, 0.81, 0.0, 1),
            ("sum", 2_990, 0.63, 0.0, 498),
            ("A", 3_050, 0.15, 0.0, 498),
        ],
    ),
    (
        "adi",
        11_686,
        16_815,
        SensitivityClass::Low,
        &[
            ("X", 13_638, 0.62, 0.62, 500),
            ("B", 14_117, 0.53, 0.53, 500),
            ("A", 15_047, 0.34, 0.34, 500),
        ],
    ),
    (
        "trmm",
        5_644,
        13_305,
        SensitivityClass::Medium,
        &[
            ("B", 5_698, 0.99, 1.98, 125),
            ("A", 13_025, 0.04, 0.08, 125),
        ],
    ),
    (
        "fdtd-2d",
        4_955,
        17_458,
        SensitivityClass::High,
        &[
            ("hz", 11_407, 0.48, 1.44, 500),
            ("ey", 12_791, 0.37, 1.11, 500),
            ("ex", 13_883, 0.29, 0.87, 500),
        ],
    ),
    (
        "jacobi-2d",
        2_867,
        10_970,
        SensitivityClass::High,
        &[("A", 5_964, 0.61, 1.83, 500), ("B", 6_252, 0.58, 1.74, 500)],
    ),
];

fn measured(part: &Part) -> MeasuredProgram {
    let &(name, fast, slow, _, rows) = part;
    let object = |row: &Row| MeasuredObject {
        name: row.0.to_owned(),
        size: Bytes(row.4 * MEGABYTE),
        alone: Nanos(row.1 * HUNDREDTH),
    };
    let objects = rows.iter().map(object).collect();
    MeasuredProgram::new(
        name,
        Nanos(fast * HUNDREDTH),
        Nanos(slow * HUNDREDTH),
        objects,
    )
    .unwrap()
}

pub(super) fn programs(names: &[&str]) -> Colocation {
    let find = |name: &&str| TABLE_3.iter().find(|part| part.0 == *name).unwrap();
    Colocation::new(names.iter().map(find).map(measured).collect()).unwrap()
}

fn coral() -> Colocation {
    programs(&["STREAM", "CLOMP", "XSBench"])
}

/// The plan of a policy at a capacity in MB.
fn plan(policy: &dyn SharingPolicy, colocation: &Colocation, megabytes: u64) -> SharedPlan {
    policy
        .share(colocation, Bytes(megabytes * MEGABYTE))
        .unwrap()
}

/// The objects in the fast tier, in the order in which they were placed.
fn placed(plan: &SharedPlan) -> Vec<String> {
    plan.placed()
        .map(|grant| format!("{}.{}", grant.program, grant.object))
        .collect()
}

/// The objects in the fast tier, sorted: for the partitions, whose order has no meaning.
fn placed_by_name(plan: &SharedPlan) -> Vec<String> {
    let mut placed = placed(plan);
    placed.sort();
    placed
}

fn assert_utility(plan: &SharedPlan, printed: f64) {
    let utility = plan.utility();
    assert!(
        (utility - printed).abs() < 0.005,
        "{}: {utility}",
        plan.policy
    );
}

#[test]
fn table_3_every_class_and_every_benefit_within_the_papers_rounding() {
    for part in &TABLE_3 {
        let program = measured(part);
        assert_eq!(program.class(), part.3, "{}", part.0);
        for row in part.4 {
            let object = program.objects().iter().find(|o| o.name == row.0).unwrap();
            let benefit = Benefit::of(&program, object).value();
            // The paper rounds some and cuts others, so the last printed digit may be off by one.
            assert!(
                (benefit - row.2).abs() < 0.01,
                "{}.{}: {benefit}",
                part.0,
                row.0
            );
        }
    }
}

#[test]
fn table_3_every_co_benefit_is_the_factor_times_the_benefit() {
    for part in &TABLE_3 {
        let program = measured(part);
        let factor = f64::from(program.class().factor());
        for row in part.4 {
            let object = program.objects().iter().find(|o| o.name == row.0).unwrap();
            let co_benefit = Benefit::co_benefit(&program, object).value();
            // The paper multiplies benefits that are already rounded, so its rounding is multiplied
            // too.
            let rounding = 0.01 * factor.max(1.0);
            assert!(
                (co_benefit - row.3).abs() < rounding,
                "{}.{}: {co_benefit}",
                part.0,
                row.0
            );
            // The paper's rule exactly: the printed co-benefit is the factor times the printed
            // benefit.
            assert!(
                (factor * row.2 - row.3).abs() < 1e-9,
                "{}.{}",
                part.0,
                row.0
            );
        }
    }
}

#[test]
fn table_4_equal_split_uses_059_of_the_tier_for_both_of_xsbench_parts_and_c() {
    let plan = plan(&PaperPolicy::EqualSplit, &coral(), 3000);
    assert_eq!(
        placed_by_name(&plan),
        [
            "CLOMP.parts",
            "STREAM.c",
            "XSBench.energy",
            "XSBench.nuclide"
        ]
    );
    assert_utility(&plan, 0.59);
}

#[test]
fn table_4_proportional_split_uses_045_of_the_tier_for_nuclide_parts_c_and_a() {
    let plan = plan(&PaperPolicy::ProportionalSplit, &coral(), 3000);
    assert_eq!(
        placed_by_name(&plan),
        ["CLOMP.parts", "STREAM.a", "STREAM.c", "XSBench.nuclide"]
    );
    assert_utility(&plan, 0.45);
}

#[test]
fn table_4_fair_merge_uses_087_of_the_tier_and_places_stream_clomp_xsbench_in_turn() {
    let plan = plan(&PaperPolicy::FairMerge, &coral(), 3000);
    assert_eq!(
        placed(&plan),
        [
            "STREAM.c",
            "CLOMP.zones",
            "XSBench.nuclide",
            "STREAM.a",
            "CLOMP.parts"
        ]
    );
    assert_utility(&plan, 0.87);
}

#[test]
fn table_4_blind_merge_uses_096_of_the_tier_for_zones_nuclide_and_all_of_stream() {
    let plan = plan(&PaperPolicy::BlindMerge, &coral(), 3000);
    assert_eq!(
        placed(&plan),
        [
            "CLOMP.zones",
            "XSBench.nuclide",
            "STREAM.c",
            "STREAM.a",
            "STREAM.b"
        ]
    );
    assert_utility(&plan, 0.96);
}

#[test]
fn table_4_comerge_is_blind_merge_where_all_programs_are_of_one_class() {
    let plan = plan(&PaperPolicy::CoMerge, &coral(), 3000);
    assert_eq!(
        placed(&plan),
        placed(&self::plan(&PaperPolicy::BlindMerge, &coral(), 3000))
    );
    assert_utility(&plan, 0.96);
}

#[test]
fn section_4_1_two_polybench_programs_use_all_of_an_equal_split_and_075_of_a_proportional_one() {
    let pair = programs(&["jacobi-2d", "fdtd-2d"]);
    let equal = plan(&PaperPolicy::EqualSplit, &pair, 2000);
    assert_eq!(
        placed_by_name(&equal),
        ["fdtd-2d.ey", "fdtd-2d.hz", "jacobi-2d.A", "jacobi-2d.B"]
    );
    assert_utility(&equal, 1.0);
    let proportional = plan(&PaperPolicy::ProportionalSplit, &pair, 2000);
    assert_eq!(
        placed_by_name(&proportional),
        ["fdtd-2d.ey", "fdtd-2d.hz", "jacobi-2d.A"]
    );
    assert_utility(&proportional, 0.75);
    let pair = programs(&["doitgen", "fdtd-2d"]);
    let proportional = plan(&PaperPolicy::ProportionalSplit, &pair, 2000);
    assert_eq!(
        placed_by_name(&proportional),
        ["doitgen.C4", "doitgen.sum", "fdtd-2d.ey", "fdtd-2d.hz"]
    );
    assert_utility(&proportional, 0.75);
}

#[test]
fn section_4_2_blind_merge_leaves_fdtd_with_nothing_that_fair_merge_gives_its_best_object() {
    let pair = programs(&["jacobi-2d", "fdtd-2d"]);
    let fair = plan(&PaperPolicy::FairMerge, &pair, 1000);
    assert_eq!(placed(&fair), ["fdtd-2d.hz", "jacobi-2d.A"]);
    let blind = plan(&PaperPolicy::BlindMerge, &pair, 1000);
    assert_eq!(placed(&blind), ["jacobi-2d.A", "jacobi-2d.B"]);
}

#[test]
fn section_4_2_comerge_prefers_sensitive_jacobi_to_adi_which_blind_merge_does_not() {
    // adi.X and jacobi-2d.A differ by 0.0016 and would be equal if rounded before the comparison.
    let pair = programs(&["jacobi-2d", "adi"]);
    let blind = plan(&PaperPolicy::BlindMerge, &pair, 1000);
    assert_eq!(placed(&blind), ["adi.X", "jacobi-2d.A"]);
    let comerge = plan(&PaperPolicy::CoMerge, &pair, 1000);
    assert_eq!(placed(&comerge), ["jacobi-2d.A", "jacobi-2d.B"]);
}

#[test]
fn comerge_gives_an_insensitive_program_what_room_is_left_by_its_benefits() {
    let pair = programs(&["doitgen", "adi"]);
    let plan = plan(&PaperPolicy::CoMerge, &pair, 2000);
    assert_eq!(
        placed(&plan),
        ["adi.X", "adi.B", "adi.A", "doitgen.C4", "doitgen.sum"]
    );
}

#[test]
fn the_printed_formula_is_comerge_from_class_low_to_a_slow_down_below_four() {
    for names in [
        &["STREAM", "CLOMP", "XSBench"][..],
        &["jacobi-2d", "adi"],
        &["trmm", "fdtd-2d"],
    ] {
        let programs = programs(names);
        for megabytes in [250, 1000, 3000] {
            let [tables, formula] = [
                &PaperPolicy::CoMerge as &dyn SharingPolicy,
                &PaperPolicy::CoMergePrinted,
            ]
            .map(|policy| placed(&plan(policy, &programs, megabytes)));
            assert_eq!(tables, formula, "{names:?}");
        }
    }
}

#[test]
fn the_printed_formula_prefers_a_program_that_is_slowed_six_times_to_one_that_is_slowed_four_times()
{
    // STREAM with the benefits of table 3 and a slow-down of 6, within the 4 to 6 of figure 1 at B:0.15 L:5. Its co-benefits by the tables are
    // those of table 3: c 1.75, a 1.20, b 1.20; by the formula c 3.50, a 2.41, b 2.39. Both give jacobi-2d, which is below 4, A 1.85 and B 1.75.
    let stream: Part = (
        "STREAM",
        2_883,
        17_298,
        SensitivityClass::High,
        &[
            ("a", 11_517, 0.4, 1.2, 534),
            ("b", 11_545, 0.4, 1.2, 534),
            ("c", 8_886, 0.58, 1.75, 534),
        ],
    );
    let jacobi = TABLE_3.iter().find(|part| part.0 == "jacobi-2d").unwrap();
    let pair = Colocation::new(vec![measured(&stream), measured(jacobi)]).unwrap();
    let tables = plan(&PaperPolicy::CoMerge, &pair, 1100);
    assert_eq!(placed(&tables), ["jacobi-2d.A", "STREAM.c"]);
    let formula = plan(&PaperPolicy::CoMergePrinted, &pair, 1100);
    assert_eq!(placed(&formula), ["STREAM.c", "STREAM.a"]);
    assert!(
        formula.grants[1]
            .reason
            .contains("its printed co-benefit is 2.406"),
        "{:?}",
        formula.grants[1]
    );
}

#[test]
fn the_printed_formula_counts_a_program_of_class_none_once() {
    let pair = programs(&["doitgen", "adi"]);
    assert_eq!(
        placed(&plan(&PaperPolicy::CoMergePrinted, &pair, 1000)),
        ["doitgen.C4", "doitgen.sum", "adi.X"]
    );
    assert_eq!(
        placed(&plan(&PaperPolicy::CoMerge, &pair, 1000)),
        ["adi.X", "adi.B"]
    );
}
