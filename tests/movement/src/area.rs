//! An [`Area`] is memory of one [`Kind`], to which the proof writes while it moves.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use isotherm_sys::memory;
use isotherm_sys::staged::UNIT_BYTES;

use crate::page::{PAGE_BYTES, Progress, Words, fill};

isotherm_model::variant_words! {
    /// The kind of memory of an area, with its name in the output.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// Private anonymous, 4 KiB pages.
        Small = "small",
        /// Private anonymous, huge pages where the kernel gives them.
        Huge = "huge",
        /// As `Small`, moved by the paper's two copies while its writers pause.
        Paper = "paper",
        /// As `Small`, locked by `mlock` while it is moved.
        Locked = "locked",
        /// Shared anonymous.
        Shared = "shared",
        /// A file, mapped shared.
        File = "file",
        /// A file, mapped private.
        PrivateFile = "private-file",
        /// Private hugetlb pages.
        Hugetlb = "hugetlb",
    }
}

impl Kind {
    /// Whether a forked child has the pages as they were at the fork. The kernel may take a child's hugetlb
    /// pages away when it has no more.
    pub const fn is_private(self) -> bool {
        !matches!(self, Self::Shared | Self::File | Self::Hugetlb)
    }

    /// Whether it is plain memory, the only kind that is declared movable for staged copies.
    pub const fn is_plain(self) -> bool {
        matches!(self, Self::Small | Self::Huge | Self::Paper | Self::Locked)
    }

    const fn units(self) -> usize {
        match self {
            Self::Small | Self::Huge => 8,
            Self::Paper | Self::Hugetlb => 4,
            _ => 2,
        }
    }
}

/// Memory shared by writers, readers and movers.
#[derive(Debug)]
pub struct Area {
    /// Its kind of memory.
    pub kind: Kind,
    start: usize,
    progress: Vec<Progress>,
    /// First page number; no two areas share a page number.
    first_page: u64,
    /// Held for reading by threads that visit, for writing by a mover without protection.
    gate: RwLock<()>,
    _file: Option<File>,
}

impl Area {
    /// Maps and fills an area; files are made in `folder`.
    ///
    /// # Errors
    /// The machine does not have this kind of memory.
    pub fn new(kind: Kind, folder: &Path, first_page: u64) -> io::Result<Self> {
        let bytes = kind.units() * UNIT_BYTES;
        let file = match kind {
            Kind::File | Kind::PrivateFile => Some(scratch(folder, kind, bytes)?),
            _ => None,
        };
        let start = map(kind, bytes, file.as_ref())?;
        let area = Self {
            kind,
            start,
            progress: (0..bytes / PAGE_BYTES)
                .map(|_| Progress::default())
                .collect(),
            first_page,
            gate: RwLock::new(()),
            _file: file,
        };
        for page in 0..area.pages() {
            fill(area.words(page), area.number(page));
        }
        Ok(area)
    }

    /// Number of its pages.
    pub fn pages(&self) -> usize {
        self.progress.len()
    }

    /// Its addresses.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.pages() * PAGE_BYTES
    }

    /// The words of a page.
    pub fn words(&self, page: usize) -> &Words {
        assert!(page < self.pages());
        let address = self.start + page * PAGE_BYTES;
        // SAFETY: in bounds of a mapping that lives as long as the program, aligned to a page, and
        // shared as atomics alone.
        unsafe { &*std::ptr::with_exposed_provenance::<Words>(address) }
    }

    /// The page's number, unique in all areas.
    pub fn number(&self, page: usize) -> u64 {
        self.first_page + page as u64
    }

    /// The last write of the page's owner.
    pub fn progress(&self, page: usize) -> &Progress {
        &self.progress[page]
    }

    /// Runs `visit` unless the area is closed.
    pub fn visit<R>(&self, visit: impl FnOnce() -> R) -> Option<R> {
        let _open = self.gate.try_read().ok()?;
        Some(visit())
    }

    /// Runs `work` while no thread visits: for movers without protection.
    pub fn alone<R>(&self, work: impl FnOnce() -> R) -> R {
        let _closed = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        work()
    }

    /// Locks the area in memory, or unlocks it.
    ///
    /// # Errors
    /// The limit on locked memory is too low.
    pub fn lock(&self, locked: bool) -> io::Result<()> {
        let (start, bytes) = (self.start as *const libc::c_void, self.range().len());
        // SAFETY: the range is mapped; locking changes no content.
        let answer = unsafe {
            if locked {
                libc::mlock(start, bytes)
            } else {
                libc::munlock(start, bytes)
            }
        };
        if answer == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

fn scratch(folder: &Path, kind: Kind, bytes: usize) -> io::Result<File> {
    let path = folder.join(format!("{}-{}", kind.word(), std::process::id()));
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    // The mapping keeps it alive; nothing is left behind however the program ends.
    std::fs::remove_file(&path)?;
    file.set_len(bytes as u64)?;
    Ok(file)
}

fn map(kind: Kind, bytes: usize, file: Option<&File>) -> io::Result<usize> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = match kind {
        Kind::Shared => libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        Kind::File => libc::MAP_SHARED,
        Kind::PrivateFile => libc::MAP_PRIVATE,
        Kind::Hugetlb => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB,
        _ => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    };
    let descriptor = file.map_or(-1, AsRawFd::as_raw_fd);
    let error = |error: memory::Errno| io::Error::from(error);
    let space = memory::reserve(bytes + UNIT_BYTES).map_err(error)?;
    let start = space.next_multiple_of(UNIT_BYTES);
    // SAFETY: the range was reserved above and no other code knows it yet.
    unsafe {
        memory::map(start, bytes, access, flags | libc::MAP_FIXED, descriptor, 0).map_err(error)?;
        match kind {
            Kind::Huge => {
                let _ = memory::advise(start, bytes, libc::MADV_HUGEPAGE);
            }
            Kind::Small | Kind::Paper | Kind::Locked => {
                let _ = memory::advise(start, bytes, libc::MADV_NOHUGEPAGE);
            }
            _ => {}
        }
    }
    Ok(start)
}
