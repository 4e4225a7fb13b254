//! Tests `isotherm record --pid` on a program that runs already: what the recording has of its memory and code, how it ends, and that the
//! program runs on.
//!
//! A C compiler must be on the `PATH`, and for the process with a session `libisotherm.so` beside the tool (`cargo build --workspace` puts
//! it there).

mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use support::{isotherm, stderr, succeeds};

const MIB: u64 = 1 << 20;

/// The program, which works until this is dropped.
struct Service {
    directory: TempDir,
    child: Child,
    /// The number of its process.
    pid: u32,
}

impl Service {
    /// Builds the program and starts it.
    fn start() -> Self {
        Self::start_under(&[])
    }

    /// As [`Service::start`], by a command of the tool before it.
    fn start_under(arguments: &[&str]) -> Self {
        let directory = built();
        let program = directory.path().join("service");
        let command = match arguments {
            [] => Command::new(&program),
            arguments => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
                command.args(arguments).arg("--").arg(&program);
                command
            }
        };
        let child = working(command, &directory);
        let pid = match arguments {
            [] => child.id(),
            _ => child_of(child.id()),
        };
        Self {
            directory,
            child,
            pid,
        }
    }

    /// As [`Service::start`], from a file system that only the program's mount namespace has, as in a container. It needs root.
    fn start_in_namespace() -> Self {
        let directory = built();
        let script = "mkdir inside && mount -t tmpfs none inside && cp service inside && exec \"$PWD/inside/service\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]);
        let child = working(command, &directory);
        Self {
            directory,
            pid: child.id(),
            child,
        }
    }

    /// Runs the tool in its directory.
    fn isotherm(&self, arguments: &[&str]) -> Output {
        isotherm(&self.directory, arguments)
    }

    fn succeeds(&self, arguments: &[&str]) -> Output {
        succeeds(&self.directory, arguments)
    }

    /// Records it for this time; `None` where the kernel allows no samples.
    fn record(&self, output: &str, time: &str) -> Option<Output> {
        let pid = self.pid.to_string();
        let arguments = ["record", "--pid", &pid, "--for", time, "-o", output];
        let recorded = self.isotherm(&[&arguments[..], &["--cache", "0B", "--force"]].concat());
        let said = stderr(&recorded);
        if said.contains("perf events are not allowed") || said.contains("cannot be sampled") {
            return None;
        }
        assert!(recorded.status.success(), "{said}");
        Some(recorded)
    }

    /// The report on a profile with enough samples to compare; `None` where the kernel allows none. A busy machine has few in a second.
    fn report(&self, output: &str) -> Option<Value> {
        for time in ["1s", "4s", "16s", "64s"] {
            self.record(output, time)?;
            let report = self.succeeds(&["report", "--json", output]);
            let report: Value = serde_json::from_slice(&report.stdout).expect("is JSON");
            if report["totals"]["accesses"].as_u64().expect("a number") > 100 {
                return Some(report);
            }
        }
        panic!("few samples in a minute");
    }

    fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("is a child").is_none()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.pid as i32) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// A directory with the program.
fn built() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/service.c");
    let built = Command::new("cc")
        .current_dir(&directory)
        .args(["-O1", "-g", "-pthread", "-Wl,--build-id", "-o", "service"])
        .arg(source)
        .status();
    assert!(built.expect("a C compiler").success());
    directory
}

/// Runs a command in a directory until the program that it starts works.
fn working(mut command: Command, directory: &TempDir) -> Child {
    command.current_dir(directory).stdout(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("is piped");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("is text");
    assert_eq!(line, "works\n");
    child
}

/// The process that a command of the tool runs, beside its guard.
fn child_of(pid: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("the kernel lists them");
    let is_service = |pid: &&str| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name == "service\n")
    };
    let mut children = children.split_ascii_whitespace();
    let child = children.find(is_service).expect("runs");
    child.parse().expect("a number")
}

/// The hottest site whose location begins so.
fn site<'a>(report: &'a Value, location: &str) -> &'a Value {
    let mut sites = report["sites"].as_array().expect("sites").iter();
    let text = |site: &Value| site["location"].as_str().expect("a text").to_owned();
    sites
        .find(|site| text(site).starts_with(location))
        .unwrap_or_else(|| panic!("{location}: {report:#}"))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {value:#}"))
}

#[test]
fn a_running_process_shows_its_variables_mappings_and_code_and_runs_on() {
    let mut service = Service::start();
    let Some(report) = service.report("app.iso") else {
        return isotherm_skip::skip!("no samples here");
    };
    assert!(service.is_alive());
    // Data of the thread that was there before, of those that began later, and of both.
    let hot = ["data steady", "data brief", "anonymous "].map(|it| site(&report, it));
    let cold = site(&report, "data cold");
    for site in hot {
        assert!(
            number(site, "accesses") > 10 + number(cold, "accesses"),
            "{report:#}"
        );
    }
    let [steady, brief, mapped] = hot;
    let kinds = [steady, brief, mapped].map(|site| site["kind"].as_str());
    assert_eq!(kinds, [Some("static"), Some("static"), Some("region")]);
    for (site, bytes) in [(steady, 8 * MIB), (cold, 8 * MIB), (mapped, 32 * MIB)] {
        let resident = number(site, "peak_rss_bytes");
        assert!((bytes..bytes + 4 * MIB).contains(&resident), "{site:#}");
    }
    let code = &steady["code"][0];
    assert_eq!(code["function"], "accessed", "{steady:#}");
    assert!(number(code, "loads") > 0, "{steady:#}");
    let counted = &report["totals"]["counted"];
    assert_eq!(counted, "time waiting for memory", "{report:#}");
    let run = &report["run"];
    assert_eq!(run["ending"], "detached");
    let command = run["command"][0].as_str().expect("a text");
    assert!(command.ends_with("/service"), "{command}");
    let export = [
        "report", "app.iso", "--export", "folded", "--stacks", "code",
    ];
    let stacks = service.succeeds(&export);
    let stacks = String::from_utf8_lossy(&stacks.stdout).into_owned();
    assert!(stacks.contains("data steady"), "{stacks}");
}

#[test]
fn a_process_in_a_container_shows_its_variables_and_functions() {
    if !rustix::process::geteuid().is_root() {
        return isotherm_skip::skip!("a mount namespace needs root");
    }
    let service = Service::start_in_namespace();
    let program = service.directory.path().join("inside/service");
    assert!(!program.exists(), "it is in the program's namespace alone");
    let Some(report) = service.report("app.iso") else {
        return isotherm_skip::skip!("no samples here");
    };
    let steady = site(&report, "data steady");
    assert_eq!(steady["code"][0]["function"], "accessed", "{steady:#}");
    assert!(steady["code"][0]["line"].as_u64().is_some(), "{steady:#}");
    let warnings = serde_json::to_string(&report).expect("is JSON");
    assert!(!warnings.contains("cannot be read here"), "{report:#}");
}

#[test]
fn every_command_takes_a_profile_of_a_running_process() {
    let service = Service::start();
    if service.report("app.iso").is_none() {
        return isotherm_skip::skip!("no samples here");
    }
    service.report("later.iso").expect("as before");
    service.succeeds(&["report", "app.iso", "-o", "app.html"]);
    let difference = service.succeeds(&["diff", "app.iso", "later.iso", "--json"]);
    let difference: Value = serde_json::from_slice(&difference.stdout).expect("is JSON");
    let sites = difference["sites"].as_array().expect("sites");
    let matched = sites.iter().filter(|site| site["matched_by"] == "name");
    assert!(matched.count() >= 3, "{difference:#}");
    let plan = ["plan", "app.iso", "--tiers", "emulated", "--fast", "18MiB"];
    let planned = service.succeeds(&[&plan[..], &["-o", "app.plan"]].concat());
    let said = stderr(&planned);
    assert!(said.contains("no run can place them"), "{said}");
    let plan = std::fs::read_to_string(service.directory.path().join("app.plan"));
    let plan = plan.expect("was written");
    let tier = |label: &str| {
        let mut lines = plan.lines().filter(|line| line.starts_with("site "));
        lines
            .find(|line| line.contains(label))
            .map(|line| line.split(' ').nth(2))
    };
    assert_eq!(tier("# data steady "), Some(Some("fast")), "{plan}");
    assert_eq!(tier("# data cold "), Some(Some("slow")), "{plan}");
    assert_eq!(tier("# anonymous "), None, "{plan}");
    service.succeeds(&["explain", "app.plan", "data steady"]);
    let refused = service.isotherm(&["sensitivity", "--profile", "app.iso", "--", "true"]);
    assert!(
        stderr(&refused).contains("a process that ran already"),
        "{}",
        stderr(&refused)
    );
}

/// Starts a recording without a limit, and waits until it has attached: the recording and what it says from there on.
fn recording(service: &Service) -> Option<(Child, BufReader<std::process::ChildStderr>)> {
    // A shell that starts the tests in the background has them ignore the interrupt.
    let mut recording = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_isotherm")])
        .current_dir(&service.directory)
        .args([
            "record",
            "--epoch",
            "100ms",
            "--pid",
            &service.pid.to_string(),
        ])
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut said = BufReader::new(recording.stderr.take().expect("is piped"));
    let mut line = String::new();
    while !line.contains("recording process") {
        line.clear();
        if said.read_line(&mut line).expect("is text") == 0 || line.contains("not allowed") {
            recording.kill().expect("is a child");
            recording.wait().expect("ends");
            return None;
        }
    }
    Some((recording, said))
}

/// The end of a recording: what it said.
fn ended(recording: &mut Child, mut said: BufReader<std::process::ChildStderr>) -> String {
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("is text");
    assert!(recording.wait().expect("ends").success(), "{rest}");
    rest
}

#[test]
fn a_signal_ends_the_recording_and_the_profile_is_complete() {
    let mut service = Service::start();
    let Some((mut process, said)) = recording(&service) else {
        return isotherm_skip::skip!("no samples here");
    };
    let profile = service.directory.path().join("app.iso");
    let has_epoch = || {
        let mut files = std::fs::read_dir(&profile).into_iter().flatten().flatten();
        files.any(|file| file.file_name().to_string_lossy().contains("heat"))
    };
    while !has_epoch() {
        std::thread::yield_now();
    }
    let pid = Pid::from_child(&process);
    kill_process(pid, Signal::INT).expect("runs");
    let rest = ended(&mut process, said);
    assert!(
        rest.contains("runs on") && rest.contains("recorded "),
        "{rest}"
    );
    assert!(service.is_alive());
    let report = service.succeeds(&["report", "--json", "app.iso"]);
    assert_eq!(stderr(&report), "");
    let report: Value = serde_json::from_slice(&report.stdout).expect("is JSON");
    assert_eq!(report["run"]["ending"], "detached");
}

#[test]
fn the_end_of_the_process_ends_the_recording() {
    let service = Service::start();
    let Some((mut process, said)) = recording(&service) else {
        return isotherm_skip::skip!("no samples here");
    };
    let pid = Pid::from_raw(service.pid as i32).expect("a number");
    kill_process(pid, Signal::KILL).expect("runs");
    let rest = ended(&mut process, said);
    assert!(rest.contains("(service) ended"), "{rest}");
    let report = service.succeeds(&["report", "--json", "app.iso"]);
    let report: Value = serde_json::from_slice(&report.stdout).expect("is JSON");
    assert!(
        number(site(&report, "data cold"), "peak_rss_bytes") >= 8 * MIB,
        "{report:#}"
    );
}

#[test]
fn a_process_with_the_runtime_has_its_allocation_sites_too() {
    let service = Service::start_under(&["record", "-o", "first.iso"]);
    let Some(report) = service.report("app.iso") else {
        return isotherm_skip::skip!("no samples here");
    };
    let mapped = site(&report, "service.c:");
    assert_eq!(mapped["kind"], "mapping");
    assert!(number(mapped, "accesses") > 0, "{mapped:#}");
    assert_eq!(site(&report, "data steady")["kind"], "static");
    let sites = report["sites"].as_array().expect("sites").iter();
    let large = sites.filter(|site| number(site, "peak_rss_bytes") >= 32 * MIB);
    assert_eq!(large.count(), 1, "the mapping has one owner: {report:#}");
}

#[test]
fn a_program_whose_file_is_gone_is_recorded_without_its_names() {
    let service = Service::start();
    std::fs::remove_file(service.directory.path().join("service")).expect("is there");
    let Some(recorded) = service.record("app.iso", "1s") else {
        return isotherm_skip::skip!("no samples here");
    };
    let said = stderr(&recorded);
    assert!(
        said.contains("1 file of the process cannot be read here"),
        "{said}"
    );
    let report = service.succeeds(&["report", "--json", "app.iso"]);
    let report: Value = serde_json::from_slice(&report.stdout).expect("is JSON");
    let data = site(&report, "file ");
    assert!(number(data, "peak_rss_bytes") >= 24 * MIB, "{report:#}");
}

#[test]
fn what_cannot_be_recorded_is_one_sentence() {
    let service = Service::start();
    let pid = service.pid.to_string();
    let refused = |arguments: &[&str], expected: &str| {
        let output = service.isotherm(arguments);
        let said = stderr(&output);
        assert!(!output.status.success(), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    };
    refused(&["record", "--pid", "4194305"], "no such process");
    refused(
        &["record", "--pid", &pid, "--", "true"],
        "cannot be used with",
    );
    refused(
        &["record", "--pid", &pid, "--isolate", "sites"],
        "cannot be used with",
    );
    refused(&["record", "--for", "1s"], "--pid");
    refused(
        &["record", "--for", "1s", "--", "true"],
        "cannot be used with",
    );
    refused(&["record", "--pid", &pid, "--for", "0s"], "longer than 0");
    refused(
        &["record", "--pid", &pid, "--source", "trapped-pages"],
        "without Isotherm",
    );
    let others = of_another_user(&service);
    let said = stderr(&others);
    assert!(
        !others.status.success() && said.contains("belongs to user 0"),
        "{said}"
    );
    assert!(said.contains("sudo isotherm record --pid"), "{said}");
}

/// Records a process of root as another user: the service, by a copy of the tool as a user who owns nothing, or process 1 of the machine.
fn of_another_user(service: &Service) -> Output {
    const NOBODY: u32 = 65_534;
    if !rustix::process::getuid().is_root() {
        return service.isotherm(&["record", "--pid", "1"]);
    }
    let directory = service.directory.path();
    // A process of its own copies: a file that this one had open for writing cannot be run.
    let tool = env!("CARGO_BIN_EXE_isotherm");
    let copied = Command::new("cp").arg(tool).arg(directory).status();
    assert!(copied.expect("cp runs").success());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(directory, open).expect("is ours");
    let mut command = Command::new(directory.join("isotherm"));
    command.current_dir(directory);
    command.args(["record", "--pid", &service.pid.to_string()]);
    command.uid(NOBODY).gid(NOBODY).output().expect("starts")
}

#[test]
fn accessed_pages_of_a_running_process_are_counted_by_its_mappings() {
    let mut service = Service::start();
    let pid = service.pid.to_string();
    let recorded = service.isotherm(&[
        "record",
        "--pid",
        &pid,
        "--for",
        "2s",
        "--source",
        "accessed-bits",
    ]);
    let said = stderr(&recorded);
    if said.contains("clear_refs") {
        return isotherm_skip::skip!("accessed bits: {said}");
    }
    assert!(recorded.status.success(), "{said}");
    let report = service.succeeds(&["report", "--json", "app.iso"]);
    let report: Value = serde_json::from_slice(&report.stdout).expect("is JSON");
    assert!(
        number(site(&report, "anonymous "), "accesses") > 0,
        "{report:#}"
    );
    assert!(service.is_alive());
}
