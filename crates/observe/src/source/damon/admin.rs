//! `Admin` owns *kdamonds*, threads of the kernel's DAMON, through its sysfs files: it sets them up unless another program did, writes
//! their settings, reads their regions, and removes them in the end. A source opens it and passes it to its reader thread.

use std::fs;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use isotherm_model::units::Nanos;

use crate::process_usage::ProcessStat;

/// The directory of the files, below the root.
pub(super) const ADMIN: &str = "sys/kernel/mm/damon/admin/kdamonds";

/// Checks of every region in one report, at full speed: as many as in the document's example.
const LOOKS: u64 = 20;

/// Time between two checks at full speed, in microseconds.
const SAMPLE_US: u64 = 5_000;

/// Time between two updates of the memory ranges, in microseconds.
const UPDATE_US: u64 = 1_000_000;

/// The kdamonds that this process set up.
#[derive(Debug)]
pub(super) struct Admin {
    files: PathBuf,
    proc_root: PathBuf,
    /// The file that records which kdamonds are ours; None for no record.
    note: Option<PathBuf>,
    count: usize,
}

/// The memory that a kdamond monitors.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// The memory of a process (`vaddr`).
    Process(u32),
    /// These physical addresses, sorted and apart (`paddr`).
    Physical(Vec<Range<u64>>),
}

/// The settings of a kdamond.
#[derive(Clone, Debug)]
pub(super) struct Monitoring {
    pub target: Target,
    /// The slowdown against full speed: 1 is full speed.
    pub interval: u32,
    /// Fewest and most regions.
    pub regions: (u64, u64),
    /// Regions with fewer accesses in a report are left out.
    pub accesses_at_least: u64,
}

/// A region in a kdamond's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub range: Range<u64>,
    /// Checks that found it accessed.
    pub accesses: u64,
}

impl Admin {
    /// Creates this many kdamonds, all off. A file in `state`, a directory that only we may write,
    /// records that they are ours; without it, earlier ones are not taken over.
    ///
    /// # Errors
    /// A message with the remedy: the kernel has no DAMON, another program uses it, its files may
    /// not be written, or it lacks these `operations`, which `remedy` enables.
    pub(super) fn open(
        root: &Path,
        state: Option<&Path>,
        count: usize,
        (operations, remedy): (&str, &str),
    ) -> Result<Self, String> {
        let files = root.join(ADMIN);
        let note = state.map(|state| state.join("kdamonds"));
        let there = read(&files.join("nr_kdamonds")).map_err(|error| {
            format!("this kernel has no DAMON ({error}); CONFIG_DAMON_SYSFS brings it")
        })?;
        if there != "0" && !are_ours(&files, note.as_deref(), &there) {
            return Err(format!(
                "DAMON has {there} kdamonds that another program has set up, and these are left \
                 alone; writing 0 to {} when they are off makes room",
                files.join("nr_kdamonds").display()
            ));
        }
        let admin = Self {
            files,
            proc_root: root.join("proc"),
            note,
            count,
        };
        admin.all_off(there.parse().unwrap_or(0));
        // From here on they are ours, and dropping them restores the kernel's state.
        admin.set_up().map_err(|error| {
            format!("DAMON may not be set up ({error}); it needs the rights of root on sysfs")
        })?;
        let can = read(&admin.files.join("0/contexts/0/avail_operations")).unwrap_or_default();
        match can.split_ascii_whitespace().any(|word| word == operations) {
            true => Ok(admin),
            false => Err(format!(
                "this kernel's DAMON has no {operations}, only: {}; {remedy} brings it",
                can.replace('\n', ", ")
            )),
        }
    }

    fn set_up(&self) -> io::Result<()> {
        self.write("nr_kdamonds", &self.count.to_string())?;
        (0..self.count)
            .try_for_each(|number| self.write(&format!("{number}/contexts/nr_contexts"), "1"))
    }

    /// Writes the settings of a kdamond and starts it.
    ///
    /// # Errors
    /// The kernel refused a setting; the error names it.
    pub(super) fn begin(&self, number: usize, monitoring: &Monitoring) -> io::Result<()> {
        self.write_all(settings(number, monitoring))
    }

    /// Changes the intervals of a running kdamond, which keeps its regions. Waits for the end of its current
    /// report.
    ///
    /// # Errors
    /// The kernel refused, or the kdamond has ended.
    pub(super) fn commit(&self, number: usize, monitoring: &Monitoring) -> io::Result<()> {
        self.write_all(intervals(number, monitoring.interval))?;
        self.write(&format!("{number}/state"), "commit")
    }

    fn write_all(&self, settings: impl IntoIterator<Item = (String, String)>) -> io::Result<()> {
        settings.into_iter().try_for_each(|(file, text)| {
            self.write(&file, &text)
                .map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))
        })
    }

    /// The number of our kdamonds.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Stops a kdamond. It is already off if its process has ended.
    pub(super) fn stop(&self, number: usize) {
        let _ = self.write(&format!("{number}/state"), "off");
    }

    /// The regions of a kdamond's last report, by address; malformed ones are left out.
    ///
    /// # Errors
    /// Its process has ended, and the kdamond with it.
    pub(super) fn regions(&self, number: usize) -> io::Result<Vec<Region>> {
        let state = format!("{number}/state");
        self.write(&state, "update_schemes_tried_regions")?;
        let tried = format!("{number}/contexts/0/schemes/0/tried_regions");
        let entries = fs::read_dir(self.files.join(tried)).into_iter().flatten();
        let regions = entries.flatten().filter_map(|entry| region(&entry.path()));
        let mut regions: Vec<Region> = regions.collect();
        regions.sort_unstable_by_key(|region| region.range.start);
        let _ = self.write(&state, "clear_schemes_tried_regions");
        Ok(regions)
    }

    /// Processor time of a kdamond.
    pub(super) fn cpu(&self, number: usize) -> Nanos {
        let pid = self.thread(number).and_then(|pid| pid.parse::<u32>().ok());
        let stat = pid.and_then(|pid| ProcessStat::read(&self.proc_root, pid));
        stat.map_or(Nanos::ZERO, |stat| stat.cpu_time)
    }

    /// Records our threads. Without the record, a daemon started after a killed one finds kdamonds
    /// that it must treat as another program's, and does without DAMON.
    pub(super) fn note(&self) {
        let pids: Vec<String> = (0..self.count).filter_map(|it| self.thread(it)).collect();
        if let Some(note) = &self.note {
            let _ = rewrite(note, &format!("{}\n{}\n", self.count, pids.join("\n")));
        }
    }

    fn thread(&self, number: usize) -> Option<String> {
        thread(&self.files, number)
    }

    fn all_off(&self, count: usize) {
        (0..count).for_each(|number| self.stop(number));
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.files.join(file), text)
    }
}

/// Stops and removes all our kdamonds.
impl Drop for Admin {
    fn drop(&mut self) {
        self.all_off(self.count);
        let _ = self.write("nr_kdamonds", "0");
        if let Some(note) = &self.note {
            let _ = fs::remove_file(note);
        }
    }
}

/// The files with a kdamond's intervals, in microseconds, at a slowdown of this many times.
fn intervals(number: usize, interval: u32) -> [(String, String); 3] {
    let interval = u64::from(interval);
    [
        ("sample_us", SAMPLE_US),
        ("aggr_us", SAMPLE_US * LOOKS),
        ("update_us", UPDATE_US),
    ]
    .map(|(file, full_speed)| {
        let file = format!("{number}/contexts/0/monitoring_attrs/intervals/{file}");
        (file, (full_speed * interval).to_string())
    })
}

/// The files of a kdamond and their new contents, in order: minima before maxima, for the case that
/// the old range is 0 to 0.
fn settings(number: usize, monitoring: &Monitoring) -> Vec<(String, String)> {
    let context = format!("{number}/contexts/0");
    let regions = format!("{context}/monitoring_attrs/nr_regions");
    let scheme = format!("{context}/schemes/0");
    let pattern = format!("{scheme}/access_pattern");
    let most = u32::MAX.to_string();
    let operations = match monitoring.target {
        Target::Process(_) => "vaddr",
        Target::Physical(_) => "paddr",
    };
    let mut settings = vec![(format!("{context}/operations"), operations.to_owned())];
    settings.extend(intervals(number, monitoring.interval));
    settings.extend([
        (format!("{regions}/max"), monitoring.regions.1.to_string()),
        (format!("{regions}/min"), monitoring.regions.0.to_string()),
        (format!("{context}/targets/nr_targets"), "1".to_owned()),
    ]);
    let target = format!("{context}/targets/0");
    match &monitoring.target {
        Target::Process(pid) => settings.push((format!("{target}/pid_target"), pid.to_string())),
        Target::Physical(ranges) => {
            let count = ranges.len().to_string();
            settings.push((format!("{target}/regions/nr_regions"), count));
            for (at, range) in ranges.iter().enumerate() {
                let region = format!("{target}/regions/{at}");
                settings.push((format!("{region}/start"), range.start.to_string()));
                settings.push((format!("{region}/end"), range.end.to_string()));
            }
        }
    }
    let least = monitoring.accesses_at_least.to_string();
    settings.extend([
        (format!("{context}/schemes/nr_schemes"), "1".to_owned()),
        (format!("{scheme}/action"), "stat".to_owned()),
        (format!("{pattern}/sz/max"), u64::MAX.to_string()),
        (format!("{pattern}/nr_accesses/max"), most.clone()),
        (format!("{pattern}/nr_accesses/min"), least),
        (format!("{pattern}/age/max"), most),
        (format!("{number}/state"), "on".to_owned()),
    ]);
    settings
}

/// A region from its directory.
fn region(directory: &Path) -> Option<Region> {
    let number = |name: &str| read(&directory.join(name)).ok()?.parse::<u64>().ok();
    let range = number("start")?..number("end")?;
    (range.start < range.end).then_some(Region {
        range,
        accesses: number("nr_accesses")?,
    })
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned())
}

/// Creates the file anew, so that a link in its place is removed and not followed.
fn rewrite(path: &Path, text: &str) -> io::Result<()> {
    let _ = fs::remove_file(path);
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

/// The thread of a running kdamond.
fn thread(files: &Path, number: usize) -> Option<String> {
    let pid = read(&files.join(format!("{number}/pid"))).ok()?;
    (pid != "-1").then_some(pid)
}

/// True where the existing kdamonds are those of the record: the same number, and every running one
/// is named in it.
fn are_ours(files: &Path, note: Option<&Path>, count: &str) -> bool {
    let Some(Ok(note)) = note.map(fs::read_to_string) else {
        return false;
    };
    let mut lines = note.lines();
    let same = lines.next() == Some(count);
    let ours: Vec<&str> = lines.collect();
    let mut running = (0..count.parse().unwrap_or(0_usize)).filter_map(|it| thread(files, it));
    same && running.all(|pid| ours.contains(&pid.as_str()))
}

#[cfg(test)]
mod tests {
    use super::{Region, region};
    use std::fs;

    #[test]
    fn a_link_in_the_place_of_the_note_is_replaced_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let [note, file] = ["note", "file"].map(|name| directory.path().join(name));
        fs::write(&file, "mine").unwrap();
        std::os::unix::fs::symlink(&file, &note).unwrap();
        super::rewrite(&note, "2\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        assert_eq!(fs::read_to_string(&note).unwrap(), "2\n");
    }

    #[test]
    fn a_region_that_makes_no_sense_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        assert_eq!(region(directory.path()), None);
        write("start", "8192");
        write("end", "4096");
        write("nr_accesses", "3");
        assert_eq!(region(directory.path()), None);
        write("end", "12288\n");
        let range = 8192..12_288;
        assert_eq!(
            region(directory.path()),
            Some(Region { range, accesses: 3 })
        );
    }
}
