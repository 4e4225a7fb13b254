//! Tests `isotherm diff`: a program is recorded, changed, built and recorded again; its sites are found by function and line.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use support::{built, isotherm, stderr, succeeds};

/// Two arrays of 8 MiB, touched page by page.
const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *volatile grown;

__attribute__((noinline)) static char *array(size_t bytes) {
    char *made = malloc(bytes);
    memset(made, 1, bytes);
    return made;
}

int main(void) {
    size_t bytes = 8 << 20;
    char *kept = array(bytes);
    grown = malloc(bytes);
    memset(grown, 2, bytes);
    printf("%d\n", kept[7] + grown[9]);
    return 0;
}
"#;

fn record(directory: &Path, profile: &str, flags: &[&str]) {
    let record = ["record", "--epoch", "50ms", "--force", "-o", profile];
    succeeds(directory, &[&record, flags, &["--", "./app"]].concat());
}

/// The difference of the profiles, as JSON.
fn json(directory: &Path, before: &str, after: &str) -> Value {
    let output = succeeds(directory, &["diff", before, after, "--json"]);
    serde_json::from_slice(&output.stdout).expect("is JSON")
}

/// The site whose location contains a text.
fn site<'a>(difference: &'a Value, location: &str) -> &'a Value {
    let sites = difference["sites"].as_array().expect("lists sites");
    let is_it = |site: &&Value| {
        let text = site["location"].as_str();
        text.is_some_and(|text| text.contains(location))
    };
    sites
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{location}: {difference:#}"))
}

#[test]
fn the_sites_of_a_rebuilt_program_are_found_again_and_what_grew_fails_a_condition() {
    let directory = built(SOURCE);
    let at = directory.path();
    record(at, "before.iso", &[]);
    let source = SOURCE
        .replace(
            "#include <string.h>",
            "#include <string.h>\n\nint unused;\n",
        )
        .replace("grown = malloc(bytes);", "grown = malloc(4 * bytes);")
        .replace("memset(grown, 2, bytes);", "memset(grown, 2, 4 * bytes);");
    std::fs::write(at.join("app.c"), source).expect("is written");
    let cc = Command::new("cc")
        .current_dir(at)
        .args(["-O1", "-g", "-o", "app", "app.c"])
        .status();
    assert!(cc.expect("a C compiler").success());
    record(at, "after.iso", &[]);

    let difference = json(at, "before.iso", "after.iso");
    assert_eq!(difference["schema_version"], 1);
    let kept = site(&difference, " array");
    assert_eq!(kept["matched_by"], "line", "{difference:#}");
    // jemalloc starts a large object at a random cache line of its first page, so that one in 64 needs a page less.
    for side in ["before", "after"] {
        let pages = kept[side]["peak_rss_bytes"].as_u64().expect("is a number") / 4096;
        assert!((2048..=2049).contains(&pages), "{kept:#}");
    }
    let grown = site(&difference, " main");
    assert_eq!(grown["matched_by"], "line", "{difference:#}");
    let changes = grown["changes"].as_array().expect("lists changes");
    assert!(changes.contains(&"larger".into()), "{grown:#}");

    let text = succeeds(at, &["diff", "before.iso", "after.iso"]).stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    for part in ["footprint", "were found again", "larger", "allocated in"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let diff = ["diff", "before.iso", "after.iso", "--fail-if"];
    let status = |condition: &str| {
        isotherm(at, &[&diff[..], &[condition]].concat())
            .status
            .code()
    };
    assert_eq!(status("footprint > +5%"), Some(3));
    assert_eq!(status("footprint of main > +20MiB"), Some(3));
    assert_eq!(status("footprint > +1000%"), Some(0));
    assert_eq!(status("footprint of array > +1%"), Some(0));
    let reverse = [
        "diff",
        "after.iso",
        "before.iso",
        "--fail-if",
        "footprint > +0%",
    ];
    assert!(isotherm(at, &reverse).status.success());
}

#[test]
fn profiles_of_two_depths_are_compared_and_bad_input_is_one_sentence() {
    let directory = built(SOURCE);
    let at = directory.path();
    record(at, "deep.iso", &["--depth", "4"]);
    record(at, "flat.iso", &["--depth", "1"]);
    let difference = json(at, "deep.iso", "flat.iso");
    assert_eq!(site(&difference, " main")["matched_by"], "name");
    assert!(
        difference["notes"].to_string().contains("smaller depth"),
        "{difference:#}"
    );

    for (arguments, status, says) in [
        (&["diff", "deep.iso", "none.iso"][..], 1, "none.iso"),
        (&["diff", "deep.iso"][..], 2, "<AFTER>"),
        (
            &[
                "diff",
                "deep.iso",
                "flat.iso",
                "--fail-if",
                "footprint > 5%",
            ][..],
            2,
            "+5% is a growth",
        ),
        (
            &[
                "diff",
                "deep.iso",
                "flat.iso",
                "--fail-if",
                "footprint of missing > +5%",
            ][..],
            1,
            "no site of the profiles has \"missing\"",
        ),
    ] {
        let output = isotherm(at, arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}
