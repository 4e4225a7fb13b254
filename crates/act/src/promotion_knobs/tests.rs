//! Tests the promotion knobs on a machine of files, with a kernel that may refuse, or die with the daemon at any write.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::rc::Rc;

use tempfile::TempDir;

use super::{Knob, KnobError, KnobRecord, PromotionKnobs, PutBack, restore};
use crate::sysfs::{Sysfs, SysfsFiles};

/// A machine with the kernel's defaults, and a directory for the record.
struct Machine {
    root: TempDir,
    writes: Rc<RefCell<Vec<(Knob, String)>>>,
    /// The number of writes after which the machine takes none any more.
    dies_after: usize,
    refuses: Option<Knob>,
}

const DEFAULTS: [(Knob, &str); 8] = [
    (Knob::Demotion, "false"),
    (Knob::RateLimit, "65536"),
    (Knob::HotThreshold, "1000"),
    (Knob::ScanDelay, "1000"),
    (Knob::ScanPeriodMin, "1000"),
    (Knob::ScanPeriodMax, "60000"),
    (Knob::ScanSize, "256"),
    (Knob::Balancing, "1"),
];

impl Machine {
    fn new() -> Self {
        let machine = Self {
            root: tempfile::tempdir().expect("a directory"),
            writes: Rc::default(),
            dies_after: usize::MAX,
            refuses: None,
        };
        for (knob, value) in DEFAULTS {
            let path = machine.root.path().join(knob.file());
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, format!("{value}\n")).expect("written");
        }
        machine
    }

    fn record(&self) -> KnobRecord {
        KnobRecord::within(self.root.path())
    }

    fn has_record(&self) -> bool {
        self.root.path().join("kernel-promotion").exists()
    }

    fn kernel(&self) -> Kernel {
        Kernel {
            files: SysfsFiles::below(self.root.path()),
            root: self.root.path().to_owned(),
            writes: Rc::clone(&self.writes),
            dies_after: self.dies_after,
            refuses: self.refuses,
        }
    }

    fn take(&self) -> Result<PromotionKnobs<Kernel>, KnobError> {
        PromotionKnobs::take(self.kernel(), self.record(), &ours())
    }

    fn value(&self, knob: Knob) -> u64 {
        knob.read(&self.kernel()).expect("a value")
    }

    fn is_as_at_first(&self) -> bool {
        let first = |value: &str| match value {
            "false" => 0,
            number => number.parse().expect("a number"),
        };
        DEFAULTS
            .iter()
            .all(|(knob, value)| self.value(*knob) == first(value))
    }
}

/// The files of a machine. As the kernel does, it answers `true` to 1 where a knob is a truth value.
#[derive(Debug)]
struct Kernel {
    files: SysfsFiles,
    root: std::path::PathBuf,
    writes: Rc<RefCell<Vec<(Knob, String)>>>,
    dies_after: usize,
    refuses: Option<Knob>,
}

impl Sysfs for Kernel {
    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.files.names(directory)
    }

    fn read(&self, file: &Path) -> io::Result<String> {
        self.files.read(file)
    }

    fn write(&mut self, file: &Path, word: &str) -> io::Result<()> {
        let of_file = |knob: &Knob| Path::new(knob.file()) == file;
        let knob = Knob::ALL.into_iter().find(of_file).expect("a knob");
        let number = self.writes.borrow().len();
        if self.refuses == Some(knob) || number >= self.dies_after {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        self.writes.borrow_mut().push((knob, word.to_owned()));
        let text = match (knob, word) {
            (Knob::Demotion, "1") => "true",
            (Knob::Demotion, "0") => "false",
            (_, word) => word,
        };
        std::fs::write(self.root.join(file), format!("{text}\n"))
    }
}

fn ours() -> BTreeMap<Knob, u64> {
    BTreeMap::from([
        (Knob::Demotion, 1),
        (Knob::RateLimit, 256),
        (Knob::HotThreshold, 200),
        (Knob::ScanDelay, 100),
        (Knob::ScanPeriodMin, 200),
        (Knob::ScanPeriodMax, 1000),
        (Knob::ScanSize, 256),
        (Knob::Balancing, 2),
    ])
}

#[test]
fn the_switch_is_set_last_and_put_back_first() {
    let machine = Machine::new();
    let mut knobs = machine.take().expect("taken");
    assert_eq!(machine.value(Knob::Balancing), 2);
    let order: Vec<Knob> = machine.writes.borrow().iter().map(|it| it.0).collect();
    assert_eq!(order, Knob::ALL);
    assert!(machine.has_record());
    machine.writes.borrow_mut().clear();
    let put = knobs.release();
    assert_eq!(put.back.len(), 8);
    assert_eq!(machine.writes.borrow()[0], (Knob::Balancing, "1".into()));
    assert!(machine.is_as_at_first() && !machine.has_record());
    assert_eq!(
        put.to_string(),
        "8 settings of the kernel's promotion as before"
    );
}

#[test]
fn other_values_are_written_only_where_they_differ() {
    let machine = Machine::new();
    let mut knobs = machine.take().expect("taken");
    machine.writes.borrow_mut().clear();
    let mut values = ours();
    assert_eq!(knobs.set(&values), Ok(()));
    assert!(machine.writes.borrow().is_empty());
    values.insert(Knob::ScanPeriodMin, 100);
    assert_eq!(knobs.set(&values), Ok(()));
    let wanted = [(Knob::ScanPeriodMin, "100".to_owned())];
    assert_eq!(machine.writes.borrow()[..], wanted);
    knobs.release();
    assert!(machine.is_as_at_first());
}

#[test]
fn a_death_at_any_write_is_put_back_by_the_record() {
    for dies_after in 0..=10 {
        let mut machine = Machine::new();
        machine.dies_after = dies_after;
        // A dead daemon puts nothing back; here its kernel takes no more writes.
        if let Ok(mut knobs) = machine.take() {
            let values = BTreeMap::from([(Knob::ScanPeriodMin, 100), (Knob::HotThreshold, 50)]);
            let _ = knobs.set(&values);
        }
        assert!(dies_after == 0 || machine.has_record() || machine.is_as_at_first());
        machine.dies_after = usize::MAX;
        let put = restore(&machine.record(), &mut machine.kernel()).expect("a record");
        let put = put.unwrap_or_default();
        assert!(put.left.is_empty() && put.failed.is_empty(), "{put}");
        assert!(machine.is_as_at_first(), "after {dies_after} writes");
        assert!(!machine.has_record());
    }
    let machine = Machine::new();
    assert_eq!(restore(&machine.record(), &mut machine.kernel()), Ok(None));
}

#[test]
fn a_knob_that_somebody_else_changed_is_theirs() {
    let machine = Machine::new();
    let mut knobs = machine.take().expect("taken");
    let theirs = machine.root.path().join(Knob::HotThreshold.file());
    std::fs::write(&theirs, "77\n").expect("written");
    let error = knobs.set(&ours()).expect_err("another owner");
    assert!(
        matches!(
            error,
            KnobError::OtherOwner {
                set: 200,
                now: 77,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("hot_threshold_ms"), "{error}");
    let put = knobs.release();
    assert_eq!(put.left, [(Knob::HotThreshold, 77)]);
    assert_eq!(put.back.len(), 7);
    assert!(
        put.to_string().contains("hot_threshold_ms stays 77"),
        "{put}"
    );
    assert_eq!(machine.value(Knob::HotThreshold), 77);
    assert_eq!(machine.value(Knob::Balancing), 1);
    assert!(!machine.has_record());
}

#[test]
fn what_a_killed_daemon_set_and_somebody_changed_since_is_left() {
    let machine = Machine::new();
    drop(machine.take().expect("taken"));
    std::fs::write(machine.root.path().join(Knob::Balancing.file()), "0\n").expect("written");
    let put = restore(&machine.record(), &mut machine.kernel());
    let put = put.expect("a record").expect("knobs");
    assert_eq!(put.left, [(Knob::Balancing, 0)]);
    assert_eq!(machine.value(Knob::ScanPeriodMin), 1000);
}

#[test]
fn a_refused_knob_puts_the_others_back() {
    for refuses in Knob::ALL {
        let mut machine = Machine::new();
        machine.refuses = Some(refuses);
        let error = machine.take().expect_err("refused").to_string();
        assert!(error.contains(refuses.name()), "{error}");
        assert!(error.contains("CAP_SYS_ADMIN"), "{error}");
        assert!(machine.is_as_at_first());
    }
}

#[test]
fn a_kernel_without_a_knob_is_left_alone() {
    let machine = Machine::new();
    std::fs::remove_file(machine.root.path().join(Knob::HotThreshold.file())).expect("removed");
    let error = machine.take().expect_err("absent").to_string();
    assert!(
        error.contains("hot_threshold_ms") && error.contains("debugfs"),
        "{error}"
    );
    assert!(machine.writes.borrow().is_empty() && !machine.has_record());
}

#[test]
fn what_cannot_be_put_back_stays_in_the_record() {
    let mut machine = Machine::new();
    drop(machine.take().expect("taken"));
    machine.refuses = Some(Knob::Balancing);
    let put = restore(&machine.record(), &mut machine.kernel());
    let PutBack { back, failed, .. } = put.expect("a record").expect("knobs");
    assert_eq!((back.len(), failed.len()), (7, 1));
    assert!(machine.has_record());
    machine.refuses = None;
    let again = restore(&machine.record(), &mut machine.kernel());
    assert_eq!(again.expect("a record").expect("knobs").back.len(), 1);
    assert!(machine.is_as_at_first() && !machine.has_record());
}
