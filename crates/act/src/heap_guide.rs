//! [`guide()`] makes the guide file of a Java heap with colours (`docs/java-heap.md`) from a plan of a Java program; [`without_java_sites`]
//! is the rest of the plan, which the runtime places.
//!
//! A site of a plan is a place in a method with its callers; an entry of a guide file is the place alone. So a place has the tier of its
//! hottest site, and colder sites in it are as hot as that one. Objects of places without an entry are hot.
//!
//! ```text
//! plan    fast  Index.grow@17 < Index.add          guide    (hot: no entry)
//!         slow  Index.grow@17 < Index.copy
//!         slow  Index.load@4  < Main.main                   site Index.load@4 cold
//! ```
//!
//! The virtual machine ends at a line that it cannot read, so a name that its reader would divide into two words has no entry.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isotherm_model::plan::{Assignment, Plan};
use isotherm_model::site::Frame;
use isotherm_model::tier::{TierIndex, Tiers};

/// Most colours of a heap, each of which is a tier.
pub const COLOURS_AT_MOST: usize = 8;
/// Bytes of the longest method's code (Java Virtual Machine Specification, section 4.7.3): no index of a bytecode is as large.
const CODE_AT_MOST: u64 = 65_535;
/// Most bytes of a name: lines of the file are shorter than 4,096 bytes.
const NAME_AT_MOST: usize = 4_000;
/// Most characters of each text in the header.
const SHOWN_AT_MOST: usize = 800;

/// A guide file, and the numbers of the plan's sites in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapGuide {
    /// The file: a header, and an entry for each place that is not hot, sorted.
    pub text: String,
    /// Number of its entries.
    pub entries: usize,
    /// Number of Java sites of the plan.
    pub java_sites: usize,
    /// Number of Java sites that the plan puts in another than the fastest tier.
    pub cold_sites: usize,
    /// Number of cold sites in the same place as a hotter one, whose colour they have.
    pub in_hotter_places: usize,
    /// Number of cold sites without a name in a guide file: native code, classes without a lasting name.
    pub unnamed: usize,
}

/// The guide file of a plan. Its entries depend only on the methods of the plan's sites, so they are the same for each build of the program
/// that has these methods.
#[must_use]
pub fn guide(plan: &Plan) -> HeapGuide {
    let sites: Vec<(&Assignment, Option<String>)> = java_sites(plan).collect();
    let mut places = BTreeMap::<&str, TierIndex>::new();
    for (site, place) in &sites {
        if let Some(place) = place {
            let tier = places.entry(place).or_insert(site.tier);
            *tier = site.tier.min(*tier);
        }
    }
    let mut guide = HeapGuide {
        text: header(plan),
        java_sites: sites.len(),
        ..HeapGuide::default()
    };
    for (site, place) in &sites {
        guide.cold_sites += usize::from(site.tier != TierIndex::FASTEST);
        match place.as_deref().map(|place| places[place]) {
            Some(tier) => guide.in_hotter_places += usize::from(tier < site.tier),
            None => guide.unnamed += usize::from(site.tier != TierIndex::FASTEST),
        }
    }
    for (place, tier) in places {
        if tier != TierIndex::FASTEST {
            guide.entries += 1;
            // Writing into a String cannot fail.
            let _ = writeln!(guide.text, "site {place} {}", colour(tier, &plan.tiers));
        }
    }
    guide
}

/// The plan's sites of the Java heap, each with its place in the words of a guide file; `None` for a place without a name there.
fn java_sites(plan: &Plan) -> impl Iterator<Item = (&Assignment, Option<String>)> {
    plan.assignments.iter().filter_map(|site| {
        let frames = plan.frames.get(&site.site)?;
        is_java_site(frames).then(|| (site, frames.first().and_then(place)))
    })
}

/// True for the frames of a Java site: methods without a module, one of which has the class of the object as its variable.
#[must_use]
pub fn is_java_site(frames: &[Frame]) -> bool {
    let is_method = |frame: &Frame| frame.module.is_empty() && frame.function.is_some();
    let makes = |frame: &Frame| {
        let variable = frame.variable.as_deref();
        variable.is_some_and(|variable| variable.starts_with("new "))
    };
    frames.iter().all(is_method) && frames.iter().any(makes)
}

/// The plan without its Java sites, which the runtime in the program does not place.
#[must_use]
pub fn without_java_sites(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    let frames = &plan.frames;
    plan.assignments
        .retain(|site| !frames.get(&site.site).is_some_and(|it| is_java_site(it)));
    plan
}

/// `com.example.Index.grow@17`. `None` for native code, which has no bytecode index, and for names that the file cannot have.
fn place(frame: &Frame) -> Option<String> {
    let method = frame.function.as_deref()?;
    let (class, name) = method.rsplit_once('.')?;
    // Blanks and `#` end a word, and a descriptor begins at `(`. The class of a lambda has another name in each run.
    let divides = |c: char| c.is_ascii_whitespace() || c.is_control() || matches!(c, '#' | '(');
    let is_nameable = !class.is_empty()
        && !name.is_empty()
        && !method.contains(divides)
        && !class.contains("$$Lambda")
        && method.len() <= NAME_AT_MOST;
    (is_nameable && frame.offset < CODE_AT_MOST).then(|| format!("{method}@{}", frame.offset))
}

/// The word for a tier that is not the fastest.
fn colour(tier: TierIndex, tiers: &Tiers) -> String {
    match tier == tiers.slowest() {
        true => "cold".to_owned(),
        false => tier.0.to_string(),
    }
}

/// Comments that name the plan of the file.
fn header(plan: &Plan) -> String {
    let tiers = plan.tiers.all().iter().zip(0..);
    let tiers: Vec<String> = tiers
        .map(|(tier, colour): (_, u32)| format!("{colour} is {}", tier.name))
        .collect();
    format!(
        "# The guide file of a Java heap with colours, from a plan by {}\n# of: {}\n# colours: {}\n",
        shown(&plan.policy),
        shown(&plan.command.join(" ")),
        shown(&tiers.join(", "))
    )
}

/// A text on one line, cut where it is long.
fn shown(text: &str) -> String {
    let text = text.escape_debug().to_string();
    match text.char_indices().nth(SHOWN_AT_MOST) {
        Some((at, _)) => format!("{} ...", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{HeapGuide, guide, is_java_site, without_java_sites};
    use isotherm_model::count_unit::CountUnit;
    use isotherm_model::emulation::Emulation;
    use isotherm_model::plan::{Assignment, Caller, Plan, PlanBounds, Value, Weight};
    use isotherm_model::site::{Frame, SiteId};
    use isotherm_model::tier::{Tier, TierIndex, TierKind, Tiers};
    use isotherm_model::units::Bytes;
    use std::collections::BTreeMap;

    fn frame(method: &str, index: u64) -> Frame {
        Frame {
            offset: index,
            function: Some(method.to_owned()),
            ..Frame::default()
        }
    }

    /// A place with a caller that asks for the object.
    fn java(method: &str, index: u64) -> Vec<Frame> {
        let caller = Frame {
            variable: Some("new Item".to_owned()),
            ..frame("app.Main.main", 3)
        };
        vec![frame(method, index), caller]
    }

    fn plan_of(tiers: Tiers, sites: &[(u32, Vec<Frame>)]) -> Plan {
        let assignment = |id: usize, tier: u32| Assignment {
            site: SiteId(100 + id as u64),
            tier: TierIndex(tier),
            value: 1,
            weight: Bytes(4096),
            parts: Vec::new(),
            leading: None,
            caller: Caller::None,
            reason: String::new(),
            label: String::new(),
        };
        let sites = || sites.iter().enumerate();
        Plan {
            policy: "cold-set=5%".to_owned(),
            value: Value::Accesses,
            counted: CountUnit::Time,
            weight: Weight::PeakRss,
            command: ["java", "-cp", "a\nb", "app.Main"]
                .map(str::to_owned)
                .to_vec(),
            depth: 4,
            tiers,
            default_tier: TierIndex::FASTEST,
            small: BTreeMap::new(),
            standing: PlanBounds::default(),
            colours: Vec::new(),
            expected: None,
            assignments: sites()
                .map(|(id, (tier, _))| assignment(id, *tier))
                .collect(),
            frames: sites()
                .map(|(id, (_, frames))| (SiteId(100 + id as u64), frames.clone()))
                .collect(),
        }
    }

    fn plan(sites: &[(u32, Vec<Frame>)]) -> Plan {
        let tiers = Tiers::emulated(Bytes(1 << 20), Bytes(1 << 30), Emulation::TMP);
        plan_of(tiers, sites)
    }

    fn entries(guide: &HeapGuide) -> Vec<&str> {
        let lines = guide.text.lines();
        lines.filter(|line| !line.starts_with('#')).collect()
    }

    #[test]
    fn cold_places_are_entries_in_the_order_of_their_names() {
        let made = guide(&plan(&[
            (1, java("app.Index.load", 4)),
            (0, java("app.Index.grow", 17)),
            (1, java("app.Cache.<init>", 65_534)),
        ]));
        assert_eq!(
            entries(&made),
            [
                "site app.Cache.<init>@65534 cold",
                "site app.Index.load@4 cold"
            ]
        );
        let counts = (made.entries, made.java_sites, made.cold_sites);
        assert_eq!(counts, (2, 3, 2));
    }

    #[test]
    fn a_place_is_as_hot_as_its_hottest_site() {
        let mut sites = vec![
            (1, java("java.util.ArrayList.grow", 35)),
            (0, java("java.util.ArrayList.grow", 35)),
            (1, java("java.util.ArrayList.grow", 40)),
        ];
        let made = guide(&plan(&sites));
        assert_eq!(entries(&made), ["site java.util.ArrayList.grow@40 cold"]);
        assert_eq!((made.cold_sites, made.in_hotter_places), (2, 1));
        sites.reverse();
        assert_eq!(guide(&plan(&sites)), made, "in any order");
    }

    #[test]
    fn names_that_would_end_the_virtual_machine_have_no_entry() {
        let native = u64::MAX;
        let long = format!("app.{}", "x".repeat(5000));
        let sites = [
            ("java.lang.Object.clone", native),
            ("app.Test.reads a file", 3),
            ("app.Test.a#b", 3),
            ("app.Test.a(b", 3),
            ("app.Main$$Lambda.run", 3),
            ("(virtual machine)", native),
            ("name", 3),
            (long.as_str(), 3),
        ];
        let sites = sites.map(|(method, index)| (1, java(method, index)));
        let made = guide(&plan(&sites));
        assert_eq!(entries(&made), [""; 0]);
        assert_eq!((made.cold_sites, made.unnamed), (8, 8));
    }

    #[test]
    fn each_tier_between_the_fastest_and_the_slowest_is_a_colour_of_its_number() {
        let tier = |name: &str, node| {
            Tier::unmeasured(name, TierKind::Nodes(vec![node]), Bytes(1 << 30), "")
        };
        let tiers = Tiers::new(vec![tier("dram", 0), tier("cxl", 1), tier("far", 2)]);
        let sites = [
            (1, java("A.a", 0)),
            (2, java("B.b", 0)),
            (0, java("C.c", 0)),
        ];
        let made = guide(&plan_of(tiers.expect("three tiers"), &sites));
        assert_eq!(entries(&made), ["site A.a@0 1", "site B.b@0 cold"]);
        assert!(
            made.text
                .contains("\n# colours: 0 is dram, 1 is cxl, 2 is far\n")
        );
    }

    #[test]
    fn the_header_is_comments_of_bounded_length_whatever_the_command() {
        let mut plan = plan(&[(0, java("A.a", 0))]);
        let text = guide(&plan).text;
        assert!(text.contains("# of: java -cp a\\nb app.Main\n"), "{text}");
        plan.command[2] = "/a/long/path.jar:".repeat(1000);
        let text = guide(&plan).text;
        assert!(
            text.lines()
                .all(|line| line.len() < 4000 && line.starts_with('#'))
        );
        assert!(text.contains(" ...\n"), "{text}");
    }

    #[test]
    fn other_sites_are_the_runtime_s() {
        let native = Frame {
            module: "/jdk/lib/server/libjvm.so".into(),
            ..frame("os::malloc", 3)
        };
        let plan = plan(&[(1, java("A.a", 0)), (0, vec![native.clone()])]);
        assert_eq!(guide(&plan).java_sites, 1);
        let rest = without_java_sites(&plan);
        assert_eq!(rest.assignments, plan.assignments[1..]);
        let makes = Frame {
            variable: Some("new A".to_owned()),
            ..native
        };
        assert!(!is_java_site(&[makes]), "it has a module");
        assert!(!is_java_site(&[frame("hot edges", 0)]), "named data");
        assert!(!is_java_site(&[]));
    }
}
