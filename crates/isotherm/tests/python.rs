//! Tests the sites of Python programs, with functions, files and lines, by a real CPython: `python3` or the one that `ISOTHERM_PYTHON`
//! names, and 3.14 where `setup/python-3.14` has fetched it. `libisotherm.so` must lie beside the program.

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use support::{succeeds, use_small_pages};

/// Arrays of one size that differ by function, by line, by caller and by thread. The lines that are looked for say so.
const SCRIPT: &str = r#"import threading

SIZE = 2 << 20
kept = []


def made(size):
    return bytearray(size)  # made


class Store:
    def grow(self):
        self.first = bytearray(SIZE)  # first
        self.second = bytearray(SIZE)  # second
        kept.append(self)


def hot():
    kept.append(made(SIZE))  # hot


def cold():
    kept.append(made(SIZE))  # cold


def generated():
    for _ in range(3):
        yield bytearray(SIZE)  # generated


def work():
    for _ in range(4):
        kept.append(bytearray(SIZE))  # work


def main():
    Store().grow()
    hot()
    cold()
    kept.extend(generated())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


main()
kept.append(bytearray(SIZE))  # module
"#;

/// The files of the interpreters: the one that `ISOTHERM_PYTHON` names or else `python3`, and that of `setup/python-3.14`. One whose functions
/// are not read, or that is not there, is left out with a printed reason.
fn interpreters() -> Vec<String> {
    let named = std::env::var("ISOTHERM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../build/python-3.14/root/usr/bin/python3.14");
    let fetched = fetched.to_str().expect("a text").to_owned();
    let found = [named, fetched].map(|name| interpreter(&name));
    found.into_iter().flatten().collect()
}

/// The file of an interpreter; a version manager's `python3` is a script that starts it. `None` where its functions are not read.
fn interpreter(name: &str) -> Option<String> {
    let question = "import sys; print(sys.executable, *sys.version_info[:2], sep='\\n')";
    let asked = Command::new(name).args(["-c", question]).output();
    let answer = match asked {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => {
            isotherm_skip::skip!("{name}: {error}");
            return None;
        }
    };
    let lines: Vec<&str> = answer.lines().collect();
    match lines[..] {
        [path, "3", "11" | "12" | "13" | "14"] => Some(path.to_owned()),
        [_, major, minor] => {
            isotherm_skip::skip!("the functions of Python {major}.{minor} are not read");
            None
        }
        _ => panic!("{name} answers {answer:?}"),
    }
}

/// The report of a run of a script.
fn recorded(directory: &Path, python: &str, text: &str) -> Value {
    use_small_pages();
    std::fs::write(directory.join("arrays.py"), text).expect("a folder of our own");
    let record = [
        "record",
        "--force",
        "-o",
        "py.iso",
        "--",
        python,
        "arrays.py",
    ];
    succeeds(directory, &record);
    let report = succeeds(directory, &["report", "--json", "py.iso"]);
    serde_json::from_slice(&report.stdout).expect("JSON")
}

/// The line of the script that ends with this remark, from 1.
fn line(text: &str, remark: &str) -> u64 {
    let at = text
        .lines()
        .position(|line| line.ends_with(&format!("# {remark}")));
    at.expect("a line") as u64 + 1
}

/// A site, with the script's functions and lines in its callers, innermost first.
#[derive(Debug)]
struct ScriptSite {
    functions: Vec<(String, u64)>,
    name: String,
    peak: u64,
}

fn sites(report: &Value) -> Vec<ScriptSite> {
    let sites = report["sites"].as_array().expect("sites");
    let own = |caller: &&Value| {
        let file = caller["file"].as_str();
        file.is_some_and(|file| file.ends_with("/arrays.py"))
    };
    let of_script = |site: &Value| {
        let callers = site["callers"].as_array().expect("callers");
        let place = |caller: &Value| {
            let function = caller["function"].as_str().expect("a function");
            (
                function.to_owned(),
                caller["line"].as_u64().expect("a line"),
            )
        };
        ScriptSite {
            functions: callers.iter().filter(own).map(place).collect(),
            name: site["site"].as_str().expect("a name").to_owned(),
            peak: site["peak_rss_bytes"].as_u64().expect("bytes"),
        }
    };
    sites.iter().map(of_script).collect()
}

#[test]
fn sites_of_python_are_functions_and_lines_with_their_callers() {
    interpreters()
        .iter()
        .for_each(|python| check_functions(python));
}

fn check_functions(python: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let report = recorded(directory.path(), python, SCRIPT);
    let sites = sites(&report);
    // With two callers: the function that makes an array for others is not enough.
    let expected: [(&[(&str, &str)], u64); 7] = [
        (&[("Store.grow", "first"), ("main", "")], 1),
        (&[("Store.grow", "second"), ("main", "")], 1),
        (&[("made", "made"), ("hot", "hot")], 1),
        (&[("made", "made"), ("cold", "cold")], 1),
        (&[("generated", "generated"), ("main", "")], 3),
        (&[("work", "work")], 4),
        (&[("<module>", "module")], 1),
    ];
    for (callers, arrays) in expected {
        let is_as_wanted = |found: &[(String, u64)]| {
            let pairs = found.iter().zip(callers);
            found.len() >= callers.len()
                && pairs.into_iter().all(|((function, at), (name, remark))| {
                    function == name && (remark.is_empty() || *at == line(SCRIPT, remark))
                })
        };
        let peaks = sites.iter().filter(|site| is_as_wanted(&site.functions));
        let peaks: Vec<u64> = peaks.map(|site| site.peak).collect();
        let least = arrays * (2 << 20);
        let likely = least..least + (1 << 20);
        assert!(
            peaks.iter().any(|peak| likely.contains(peak)),
            "{python}: {callers:?}: {peaks:?} of {sites:#?}"
        );
    }
    let text = succeeds(directory.path(), &["report", "--text", "py.iso"]);
    let text = String::from_utf8_lossy(&text.stdout);
    let place = format!("arrays.py:{} work", line(SCRIPT, "work"));
    assert!(text.contains(&place), "{text}");
}

#[test]
fn a_site_in_functions_keeps_its_name_where_lines_above_them_change() {
    interpreters().iter().for_each(|python| check_names(python));
}

fn check_names(python: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let of_work = |text: &str| {
        let sites = sites(&recorded(directory.path(), python, text));
        let of = sites.into_iter().filter(|site| {
            let innermost = site.functions.first();
            innermost.is_some_and(|(function, at)| function == "work" && *at == line(text, "work"))
        });
        of.map(|site| site.name).collect::<BTreeSet<String>>()
    };
    let before = of_work(SCRIPT);
    assert!(!before.is_empty());
    let after = of_work(&format!("# A line\n# and another one.\n{SCRIPT}"));
    assert_eq!(before, after);
}
