//! [`Resctrl`] adds up the bytes that processors moved from and to memory, by the counts of the kernel's resource control (resctrl): the
//! counter that throttles a source where the machine has no better one.
//!
//! Each control group of resctrl reports the bytes that its tasks moved through each cache, including the groups below it; the other groups
//! are directories beside the root group's files. This module never creates or writes a group: it adds up the groups of other programs, as
//! they come and go.
//!
//! Kernel document: `Documentation/filesystems/resctrl.rst`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use isotherm_topology::sysfs::entries;

use super::event::Lack;

/// The mount point of resctrl, below the root.
const MOUNTED: &str = "sys/fs/resctrl";

/// Directories there that are not control groups.
const NO_GROUPS: [&str; 3] = ["info", "mon_data", "mon_groups"];

/// The byte counts of all groups.
#[derive(Debug, Default)]
pub struct Resctrl {
    mounted: PathBuf,
    /// The last value of each file. The count of a removed group is removed with it.
    last: BTreeMap<PathBuf, u64>,
    total: u64,
}

impl Resctrl {
    /// Opens the counts below this root.
    ///
    /// # Errors
    /// The kernel has no resctrl, it is not mounted, or the processors do not count bytes.
    pub fn open(root: &Path) -> Result<Self, Lack> {
        let mounted = root.join(MOUNTED);
        let lack = |why: String, remedy| Lack { why, remedy };
        if !mounted.is_dir() {
            return Err(lack(
                format!("there is no /{MOUNTED}"),
                "a kernel with CONFIG_X86_CPU_RESCTRL or CONFIG_ARM64_MPAM on a processor with cache \
                 monitoring, not in a virtual machine",
            ));
        }
        if !mounted.join("info").is_dir() {
            return Err(lack(
                format!("nothing is mounted on /{MOUNTED}"),
                "`mount -t resctrl resctrl /sys/fs/resctrl`",
            ));
        }
        let mut resctrl = Self {
            mounted,
            ..Self::default()
        };
        match resctrl.value() {
            Ok(_) => Ok(resctrl),
            Err(error) => Err(lack(
                error.to_string(),
                "a processor with memory bandwidth monitoring (Intel MBM, AMD QoS, Arm MPAM)",
            )),
        }
    }

    /// Bytes of all groups since the counter was opened.
    ///
    /// # Errors
    /// No group reports a number.
    pub fn value(&mut self) -> io::Result<u64> {
        let files = self.files();
        let (mut now, mut has_number) = (BTreeMap::new(), false);
        for file in files {
            let Ok(text) = fs::read_to_string(&file) else {
                continue;
            };
            let before = self.last.get(&file).copied();
            // A file may hold `Unavailable` or `Error`, for a while or for good. What is counted meanwhile shows when it has a number again.
            let Ok(bytes) = text.trim().parse::<u64>() else {
                now.extend(before.map(|before| (file, before)));
                continue;
            };
            // A group that is new, or that replaced another one, starts here.
            let since = bytes.saturating_sub(before.unwrap_or(bytes));
            self.total = self.total.saturating_add(since);
            now.insert(file, bytes);
            has_number = true;
        }
        self.last = now;
        match has_number {
            true => Ok(self.total),
            false => Err(io::Error::other(format!(
                "{}: no mbm_total_bytes has a number; the processors count: {}",
                self.mounted.join("mon_data").display(),
                self.features()
            ))),
        }
    }

    /// The files with byte counts: one for each group and cache.
    fn files(&self) -> Vec<PathBuf> {
        let is_group = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            NO_GROUPS.iter().all(|other| name != *other)
        };
        let groups = directories(&self.mounted).filter(is_group);
        let groups = groups.chain([self.mounted.clone()]);
        let caches = groups.flat_map(|group| directories(&group.join("mon_data")));
        caches.map(|cache| cache.join("mbm_total_bytes")).collect()
    }

    fn features(&self) -> String {
        let file = self.mounted.join("info/L3_MON/mon_features");
        let text = fs::read_to_string(file).unwrap_or_default();
        match text.trim() {
            "" => "nothing".to_owned(),
            text => text.replace('\n', ", "),
        }
    }
}

fn directories(parent: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let paths = entries(parent).into_iter();
    paths.filter(|path| path.is_dir())
}
