//! Tests that plans are written and read back unchanged, and that each malformed line is refused with its number.

mod plans;

use proptest::prelude::*;

use isotherm_model::plan::Caller;
use isotherm_model::site::{CallerId, SiteId};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;

use super::{read, write};

const PLAN: &str = "isotherm-plan 1
# by hand
policy thermos
value accesses
weight peak-rss
depth 4
command \"./bfs\" \"a graph.bin\"
tier fast emulated-fast capacity 512MiB placement preferred  # bounded
tier slow emulated-slow capacity 8GiB placement preferred period 1s access 10us hot 13us migrate 50us
default slow
standing planned 9 first-touch 4 bound 9 total 12
expected all-slow 2.5 first-touch 2 planned 1.25 bound 1.2
site 00000000000000ab fast value 9 weight 128MiB  # main (bfs.cc:7) -- taken: it fits
site shared slow value 3 weight 1028KiB  # small ones
code 0 /bin/bfs build-id 01ab
frame 00000000000000ab 0 0x12 function main line 7
";

/// The text to replace in [`PLAN`], its replacement, and the beginning of the error message.
const MALFORMED: [(&str, &str, &str); 56] = [
    (
        "default slow",
        "default slow\ncolour warm fast",
        "line 11: unknown colour \"warm\"; known are hot, cold",
    ),
    (
        "default slow",
        "default slow\ncolour hot fats",
        "line 11: unknown tier \"fats\"",
    ),
    (
        "default slow",
        "default slow\ncolour hot fast devices 1 device 1GiB\ncolour hot slow devices 1 device 1GiB",
        "line 12: colour hot is given twice",
    ),
    (
        "default slow",
        "default slow\ncolour hot fast devices 1 device 1GiB\ncolour cold fast devices 1 device 1GiB",
        "line 12: colour cold has the tier of colour hot",
    ),
    (
        "default slow",
        "default slow\ncolour hot fast devices 99999999 device 1GiB",
        "line 11: devices: 99999999 is out of range",
    ),
    (
        "all-slow 2.5",
        "all-slow 0.0009",
        "line 12: all-slow \"0.0009\" must be a number of 0.001 to 1000000, the time over that of all fast",
    ),
    (
        "planned 1.25",
        "planned NaN",
        "line 12: planned \"NaN\" must be a number",
    ),
    (
        "access 10us",
        "access 99999999s",
        "line 9: access: 99999999.00 s is out of range, the most that is taken is 1.00 s; correct the line",
    ),
    (
        "period 1s",
        "period 99999999s",
        "line 9: period: 99999999.00 s is out of range, the most that is taken is 3600.00 s",
    ),
    ("hot 13us", "hot 2s", "line 9: hot: 2.00 s is out of range"),
    (
        "migrate 50us",
        "migrate 99999999s",
        "line 9: migrate: 99999999.00 s is out of range",
    ),
    (
        "depth 4",
        "depth 4000000000",
        "line 6: depth: 4000000000 is out of range, the most that is taken is 8",
    ),
    (
        "value 3",
        "value 18446744073709551615",
        "line 14: value: 18446744073709551615 is out of range",
    ),
    (
        "weight 1028KiB",
        "weight 16000PiB",
        "line 14: weight: 16000 PiB is out of range, the most that is taken is 128 PiB",
    ),
    (
        "isotherm-plan 1",
        "isotherm-plan 2",
        "line 1: the plan is of format version 2",
    ),
    ("isotherm-plan 1", "PAR1", "line 1: this is no plan"),
    (
        "isotherm-plan 1",
        "isotherm-plan x",
        "line 1: version \"x\" is not a whole number",
    ),
    (
        "policy thermos",
        "",
        "line 16: the file ends without a `policy` line",
    ),
    (
        "policy thermos",
        "policy a b",
        "line 3: `policy` takes one word",
    ),
    (
        "value accesses",
        "value luck",
        "line 4: unknown value \"luck\"; known are accesses",
    ),
    (
        "value accesses",
        "value accesses\ncounted luck",
        "line 5: unknown counted \"luck\"; known are accesses, misses, latency, time, touches, samples, bytes, unknown",
    ),
    (
        "depth 4",
        "depth 4\ndepth 5",
        "line 7: `depth` is already in line 6",
    ),
    (
        "depth 4",
        "depth -4",
        "line 6: depth \"-4\" is not a whole number",
    ),
    (
        "period 1s",
        "period 0ms",
        "line 9: period of zero: the slow tier would never be slowed",
    ),
    ("line 7\n", "line", "line 16: the file was cut short"),
    (" line 7\n", "", "line 16: the file was cut short"),
    ("depth 4", "depht 4", "line 6: unknown word `depht`"),
    (
        "\"./bfs\"",
        "\"./bfs",
        "line 7: a double quote stands inside a word",
    ),
    (
        "\"a graph.bin\"",
        "\"a graph",
        "line 7: a word opens with a double quote",
    ),
    (
        "emulated-fast",
        "quick",
        "line 8: unknown kind of tier \"quick\"",
    ),
    (
        "capacity 512MiB",
        "capacity 512",
        "line 8: capacity: \"512\" is not a size",
    ),
    ("capacity 512MiB", "", "line 8: `capacity` is missing"),
    (
        "placement preferred",
        "placement lax",
        "line 8: unknown placement \"lax\"",
    ),
    (
        "tier slow emulated-slow",
        "tier slow emulated-fast",
        "line 9: `access` is not known",
    ),
    ("access 10us ", "", "line 9: `access` is missing"),
    (
        "access 10us",
        "access ten",
        "line 9: access: \"ten\" is not a time",
    ),
    (
        "hot 13us",
        "hot 13us hot 14us",
        "line 9: `hot` is given twice",
    ),
    (
        "migrate 50us",
        "migrate",
        "line 9: `migrate` lacks its value",
    ),
    (
        "tier slow",
        "tier fast",
        "line 8: two tiers are named \"fast\"",
    ),
    (
        "default slow",
        "default cold",
        "line 10: unknown tier \"cold\"; the tiers are fast, slow",
    ),
    (
        "planned 9",
        "planned 9.5",
        "line 11: planned \"9.5\" is not a whole number",
    ),
    ("bound 9 ", "", "line 11: `bound` is missing"),
    (
        "ab fast",
        "ab fsat",
        "line 13: unknown tier \"fsat\"; the tiers are fast, slow",
    ),
    (
        "00000000000000ab",
        "xyz",
        "line 13: site: \"xyz\" is not a site",
    ),
    (
        "site shared",
        "site ab",
        "line 14: site 00000000000000ab is already in line 13",
    ),
    (
        "site shared",
        "site unattributed",
        "line 14: memory that no site made cannot be",
    ),
    (
        "value 3",
        "value 18446744073709551616",
        "line 14: value \"18446744073709551616\"",
    ),
    (
        "value 3",
        "value +3",
        "line 14: value \"+3\" is not a whole number",
    ),
    (
        "weight 1028KiB",
        "weight 1028",
        "line 14: weight: \"1028\" is not a size",
    ),
    (
        "site shared slow",
        "site shared",
        "line 14: unknown tier \"value\"",
    ),
    (
        "site shared slow value 3 weight 1028KiB",
        "site shared",
        "line 14: a site line is",
    ),
    ("code 0 ", "code 1 ", "line 16: there is no line `code 0`"),
    (
        "code 0 ",
        "code x ",
        "line 15: code \"x\" is not a whole number",
    ),
    (
        " 0x12 ",
        " 12 ",
        "line 16: offset \"12\" is not a hexadecimal number",
    ),
    (" line 7\n", " line\n", "line 16: `line` lacks its value"),
    (
        "function main",
        "colour main",
        "line 16: `colour` is not known here",
    ),
];

fn error_of(find: &str, replace: &str) -> String {
    assert!(PLAN.contains(find), "{find} is not in the plan");
    match read(&PLAN.replacen(find, replace, 1)) {
        Ok(_) => panic!("`{replace}` for `{find}` was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn parts_belong_to_their_site_and_overlap_nowhere() {
    let part = |text: &str| read(&format!("{PLAN}{text}\n"));
    let two = part(
        "part ab slow from 64KiB to 1MiB value 3 weight 960KiB\n\
         part ab slow from 4KiB to 64KiB value 1 weight 60KiB",
    );
    let two = two.unwrap();
    let site = two
        .assignments
        .iter()
        .find(|site| site.site == SiteId(0xab));
    let starts: Vec<u64> = site
        .unwrap()
        .parts
        .iter()
        .map(|part| part.start.0)
        .collect();
    assert_eq!(starts, [4096, 65536]);
    assert_eq!(
        two.bytes_in(TierIndex(1)),
        read(PLAN)
            .unwrap()
            .bytes_in(TierIndex(1))
            .saturating_add(Bytes(1020 << 10))
    );
    let wrong = |text: &str| part(text).unwrap_err().to_string();
    for (text, error) in [
        ("part ab", "a part line is"),
        (
            "part ab fast from 0B to 5KiB value 0 weight 0B",
            "on a page of 4KiB",
        ),
        (
            "part ab fast from 8KiB to 8KiB value 0 weight 0B",
            "ends behind its beginning",
        ),
        (
            "part ab fats from 0B to 8KiB value 0 weight 0B",
            "unknown tier",
        ),
        (
            "part ab fast from 0B to 8KiB value 0",
            "`weight` is missing",
        ),
        (
            "part 77 fast from 0B to 8KiB value 0 weight 0B",
            "no `site` line",
        ),
        (
            "part shared fast from 0B to 8KiB value 0 weight 0B",
            "no data objects",
        ),
        (
            "part ab fast from 0B to 256PiB value 0 weight 0B",
            "out of range",
        ),
        (
            "part ab fast from 0B to 8KiB value 0 weight 0B\npart ab slow from 4KiB to 12KiB value 0 weight 0B",
            "overlaps that in line",
        ),
    ] {
        assert!(wrong(text).contains(error), "{text}: {}", wrong(text));
    }
}

/// The plan of a program that got nothing of a shared tier.
#[test]
fn a_fast_tier_may_have_no_capacity() {
    let plan = read(&PLAN.replace("capacity 512MiB", "capacity 0KiB")).unwrap();
    assert_eq!(plan.tiers.all()[0].capacity, Bytes::ZERO);
    assert_eq!(read(&write(&plan)).unwrap(), plan);
}

#[test]
fn changing_one_tier_word_moves_a_site_and_nothing_else() {
    let before = read(PLAN).unwrap();
    let after = read(&PLAN.replace("ab fast", "ab slow")).unwrap();
    assert_eq!(before.tier_of(SiteId(0xab)), TierIndex(0));
    assert_eq!(after.tier_of(SiteId(0xab)), TierIndex(1));
    let (a, b) = (write(&before), write(&after));
    let differ = a.lines().zip(b.lines()).filter(|(a, b)| a != b).count();
    assert_eq!((differ, a.lines().count()), (1, b.lines().count()));
    assert_eq!(before.command, ["./bfs", "a graph.bin"]);
    // The smaller site is the hotter one, although it is later in the file.
    assert_eq!(before.assignments[0].label, "small ones");
    assert_eq!(before.assignments[1].reason, "taken: it fits");
}

#[test]
fn every_malformed_line_is_named_with_what_would_be_right() {
    for (find, replace, wanted) in MALFORMED {
        let error = error_of(find, replace);
        assert!(error.starts_with(wanted), "`{replace}`: {error}");
    }
    assert!(
        read("")
            .unwrap_err()
            .to_string()
            .starts_with("line 1: the file is empty")
    );
    let headers = PLAN.lines().filter(|line| !line.starts_with("tier"));
    let without_tiers: String = headers.map(|line| format!("{line}\n")).collect();
    let error = read(&without_tiers).unwrap_err();
    assert!(
        error.to_string().contains("there is no `tier` line"),
        "{error}"
    );
}

#[test]
fn small_sites_are_listed_by_caller_and_follow_the_shared_arena() {
    let lines = "small 00000000000000cd 0000000000000011 0000000000000012\nsmall none 0000000000000013\n\
                 small unknown 0000000000000014\ncode";
    let listed = PLAN
        .replace("default slow", "default fast")
        .replacen("code", lines, 1);
    let plan = read(&listed).unwrap();
    let caller = Caller::Direct {
        id: CallerId(0xcd),
        has_others: false,
    };
    let callers = [caller, caller, Caller::None, Caller::Unknown];
    assert_eq!(plan.small, (0x11..).map(SiteId).zip(callers).collect());
    let tiers = [0x11, 0x14, 0x15].map(|site| plan.tier_of(SiteId(site)));
    assert_eq!(tiers, [1, 1, 0].map(TierIndex));
    assert!(write(&plan).contains(lines.trim_end_matches("code")));
    for (word, wanted) in [
        (
            "0000000000000011",
            "line 15: site 0000000000000011 stands already",
        ),
        (
            "00000000000000ab",
            "line 15: site 00000000000000ab stands already",
        ),
        ("shared", "line 15: shared is no site of its own"),
        ("x", "line 15: site: \"x\" is not a site"),
    ] {
        let error = read(&listed.replace("0000000000000012", word)).unwrap_err();
        assert!(error.to_string().starts_with(wanted), "{error}");
    }
    let error = read(&listed.replace("small none 0000000000000013", "small")).unwrap_err();
    assert!(
        error.to_string().starts_with("line 16: a small line is"),
        "{error}"
    );
}

#[test]
fn comments_labels_and_reasons_may_be_left_away() {
    let bare: String = PLAN
        .lines()
        .map(|line| format!("{}\r\n", line.split('#').next().unwrap_or_default()))
        .collect();
    let plan = read(&bare).unwrap();
    assert_eq!(plan.assignments.len(), 2);
    assert!(
        plan.assignments
            .iter()
            .all(|a| a.label.is_empty() && a.reason.is_empty())
    );
}

#[test]
fn a_pair_without_costs_needs_no_period() {
    let slow = "period 1s access 10us hot 13us migrate 50us";
    let free = "period 0ns access 0ns hot 0ns migrate 0ns";
    assert!(PLAN.contains(slow) && read(&PLAN.replace(slow, free)).is_ok());
}

proptest! {
    #[test]
    fn a_plan_is_read_back_as_it_was_written(plan in plans::plans()) {
        let text = write(&plan);
        let again = read(&text);
        prop_assert_eq!(again.as_ref(), Ok(&plan), "{}", text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>(), at in any::<prop::sample::Index>()) {
        let _ = read(&text);
        let _ = read(&format!("isotherm-plan 1\n{text}"));
        let mut cut = at.index(PLAN.len());
        while !PLAN.is_char_boundary(cut) {
            cut -= 1;
        }
        let _ = read(&format!("{}{text}{}", &PLAN[..cut], &PLAN[cut..]));
    }
}
