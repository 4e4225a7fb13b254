//! `isotherm colocate` on real nodes: two programs share the fast node by its plans, at the same time.
//! Each has its share as a limit of its own, so that together they never have more than the one that was shared.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::limit::{isotherm, on_fast, pages};
use crate::{GuestTest, on};

const TWO: &[&str] = &["two-nodes"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(
        TWO,
        programs_that_run_together_have_the_shares_of_their_plans
    ),
    on!(TWO, the_programs_of_a_run_share_one_limit),
];

/// The programs, and the pages of the hot array of each.
const PROGRAMS: [(&str, usize); 2] = [("hot-and-cold", 1024), ("static-arrays", 1024)];

/// Pages of the heap's first chunk, which counts whole, however little of it is used.
const CHUNK: usize = 512;

/// A page in which a part ends and another begins, because the array does not begin on a page: its tier is that of either.
const PAGE_OF_TWO_PARTS: usize = 1;

/// The limit of both, in which the hot arrays fit and the cold ones do not.
const FAST: &str = "16MiB";
const FAST_PAGES: usize = (16 << 20) / 4096;

/// Records both programs, each for this many million accesses: their profiles.
fn recorded(millions: &str) -> [String; 2] {
    PROGRAMS.map(|(name, _)| {
        let profile = format!("/tmp/{name}.iso");
        let record = ["record", "--force", "--cache", "0B", "-o", &profile, "--"];
        isotherm(&[&record[..], &[name, millions]].concat());
        profile
    })
}

fn programs_that_run_together_have_the_shares_of_their_plans() {
    let [first, second] = recorded("20");
    let printed = isotherm(&["colocate", &first, &second, "--fast", FAST, "--json"]);
    let shared: serde_json::Value = serde_json::from_str(&printed).expect("is JSON");
    let shares = shared["programs"].as_array().expect("programs").iter();
    let granted: u64 = shares
        .map(|program| program["fast_bytes"].as_u64().expect("a number"))
        .sum();
    assert!((8 << 20..=16 << 20).contains(&granted), "{shared}");
    let runs = PROGRAMS.map(|(name, hot)| {
        let plan = format!("/tmp/{name}.plan");
        let run = Command::new("isotherm")
            .args(["--quiet", "run", "--plan", &plan, "--", name, "20"])
            .stdout(Stdio::piped())
            .spawn();
        (run.expect("it starts"), hot)
    });
    for (run, hot) in runs {
        let output = run.wait_with_output().expect("it ends");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{printed}");
        assert!(
            on_fast(&pages(&printed, "hot")[0]) >= hot - CHUNK - PAGE_OF_TWO_PARTS,
            "{printed}\n{shared}"
        );
        let fast: usize = ["hot", "cold"]
            .map(|array| on_fast(&pages(&printed, array)[0]))
            .iter()
            .sum();
        // Cold data may have what is left of the 16 MiB.
        assert!(fast <= FAST_PAGES, "{printed}\n{shared}");
    }
}

/// A process of one of the programs.
struct Process {
    program: usize,
    /// Its placed pages on the fast node.
    fast: usize,
}

/// The processes of the programs, as the kernel sees them now. What Isotherm places has a policy; libraries and stacks have none.
fn running() -> Vec<Process> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let process = |path: std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let program = PROGRAMS.iter().position(|(it, _)| *it == name.trim_end())?;
        let maps = std::fs::read_to_string(path.join("numa_maps")).ok()?;
        let placed = maps
            .lines()
            .filter(|line| !line.contains(" default") && !line.contains(" file="));
        let words = placed.flat_map(str::split_ascii_whitespace);
        let pages = words.filter_map(|word| word.strip_prefix("N0=")?.parse::<usize>().ok());
        Some(Process {
            program,
            fast: pages.sum(),
        })
    };
    processes
        .filter_map(|entry| process(entry.path()))
        .collect()
}

/// By the kernel's account while they run together, and by the times that the command prints at the end.
fn the_programs_of_a_run_share_one_limit() {
    let [first, second] = recorded("40");
    let words = ["--quiet", "colocate", &first, &second, "--fast", FAST];
    let colocate = Command::new("isotherm")
        .args(words)
        .args(["--run", "--json"])
        .stdout(Stdio::piped())
        .spawn();
    let mut colocate = colocate.expect("it starts");
    // What both had at the same time, in pages.
    let mut together = Vec::new();
    while colocate.try_wait().expect("a child").is_none() {
        let seen = running();
        let of = |program| seen.iter().find(|process| process.program == program);
        if let (Some(one), Some(other)) = (of(0), of(1)) {
            together.push([one.fast, other.fast]);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = colocate.wait_with_output().expect("it ended");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    let sums = together.iter().map(|[one, other]| one + other);
    assert!(sums.clone().max() <= Some(FAST_PAGES), "{together:?}");
    let hot = |[one, other]: &&[usize; 2]| {
        let least = PROGRAMS.map(|(_, hot)| hot - CHUNK - PAGE_OF_TWO_PARTS);
        *one >= least[0] && *other >= least[1]
    };
    assert!(together.iter().any(|pages| hot(&pages)), "{together:?}");
    let shared: serde_json::Value = serde_json::from_str(&printed).expect("is JSON");
    let times = shared["runs"]["programs"].as_array().expect("programs");
    assert_eq!(times.len(), PROGRAMS.len(), "{shared}");
    for of in ["all_fast", "alone", "together"] {
        let seconds = |run: &serde_json::Value| run[format!("{of}_seconds")].as_f64();
        assert!(times.iter().all(|run| seconds(run) > Some(0.0)), "{shared}");
    }
}
