//! `isotherm colocate` on real nodes: two programs share the fast node by its plans, at the same time.

use std::process::{Command, Stdio};

use crate::limit::{isotherm, on_fast, pages};
use crate::{GuestTest, on};

pub(crate) const TESTS: &[GuestTest] = &[on!(
    &["two-nodes"],
    programs_that_run_together_have_the_shares_of_their_plans
)];

/// The programs, and the pages of the hot array of each.
const PROGRAMS: [(&str, usize); 2] = [("hot-and-cold", 1024), ("static-arrays", 1024)];

/// Pages of the heap's first chunk, which counts whole, however little of it is used.
const CHUNK: usize = 512;

/// A page in which a part ends and another begins, because the array does not begin on a page: its tier is that of either.
const PAGE_OF_TWO_PARTS: usize = 1;

/// The hot arrays of both fit, and the cold ones do not.
fn programs_that_run_together_have_the_shares_of_their_plans() {
    let profile = |name: &str| format!("/tmp/{name}.iso");
    for (name, _) in PROGRAMS {
        let profile = profile(name);
        let record = ["record", "--force", "--cache", "0B", "-o", &profile, "--"];
        isotherm(&[&record[..], &[name, "20"]].concat());
    }
    let [first, second] = PROGRAMS.map(|(name, _)| profile(name));
    let printed = isotherm(&["colocate", &first, &second, "--fast", "16MiB", "--json"]);
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
        assert!(fast <= (16 << 20) / 4096, "{printed}\n{shared}");
    }
}
