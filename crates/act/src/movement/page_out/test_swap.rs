//! [`SwapMachine`] is a fake kernel ([`SwapSystem`]) for tests of page-out: it has one process, whose pages ([`TestPage`]) leave for swap
//! and come back as observed on real kernels. Tests set the permissions, the room in swap and in memory, and the time to page a page out.

use isotherm_model::movement::AddressRange;
use isotherm_model::units::Bytes;
use isotherm_sys::memory::Errno;
use isotherm_sys::remote_memory::PageAdvice;

use super::system::{KeptRange, PagePlace, PlacedRun, SwapSystem};
use crate::movement::system::{PAGE_BYTES, ProcessSystem, Refusal};

/// Address of the first page.
pub(super) const BASE: u64 = 1 << 30;

/// A page of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestPage {
    Absent,
    Memory,
    Huge,
    Out,
    File,
    /// `mlock`.
    Locked,
    /// A device writes to it.
    Pinned,
    /// A forked child maps it, too.
    SharedPage,
}

impl TestPage {
    /// All kinds of pages but [`Self::Huge`], of which there are 512 side by side.
    pub(super) const ALL: [Self; 7] = [
        Self::Absent,
        Self::Memory,
        Self::Out,
        Self::File,
        Self::Locked,
        Self::Pinned,
        Self::SharedPage,
    ];

    const fn place(self) -> Option<PagePlace> {
        match self {
            Self::Absent => None,
            Self::Memory | Self::Locked | Self::Pinned | Self::SharedPage => {
                Some(PagePlace::Memory)
            }
            Self::Huge => Some(PagePlace::HugePage),
            Self::Out => Some(PagePlace::Out),
            Self::File => Some(PagePlace::File),
        }
    }
}

/// The machine. Tests may set all fields.
#[derive(Debug)]
pub(super) struct SwapMachine {
    pub(super) pages: Vec<TestPage>,
    /// Pages for which swap has room.
    pub(super) room: usize,
    /// Bytes that may come back.
    pub(super) memory_room: Bytes,
    /// Whether the process may be paged out.
    pub(super) is_permitted: bool,
    /// Whether its memory may be read.
    pub(super) is_readable: bool,
    pub(super) ended: bool,
    /// Time to page a page out.
    pub(super) page_ns: u64,
    /// The longest call.
    pub(super) longest_ns: u64,
    /// Calls that would change something.
    pub(super) calls: usize,
    /// Number of queries of the room in swap.
    pub(super) looks: usize,
    now_ns: u64,
}

impl SwapMachine {
    pub(super) fn new(pages: &[TestPage]) -> Self {
        Self {
            pages: pages.to_vec(),
            room: usize::MAX,
            memory_room: Bytes(u64::MAX),
            is_permitted: true,
            is_readable: true,
            ended: false,
            page_ns: 1_000,
            longest_ns: 0,
            calls: 0,
            looks: 0,
            now_ns: 0,
        }
    }

    fn indexes(&self, range: AddressRange) -> std::ops::Range<usize> {
        let at = |address: u64| (address.saturating_sub(BASE) / PAGE_BYTES) as usize;
        at(range.start).min(self.pages.len())..at(range.end()).min(self.pages.len())
    }

    /// Pages a range out up to the first locked page; true if there was none.
    fn page_out(&mut self, range: AddressRange) -> bool {
        let indexes = self.indexes(range);
        for at in indexes {
            match self.pages[at] {
                TestPage::Locked => return false,
                TestPage::Memory | TestPage::Huge if self.room > 0 => {
                    self.pages[at] = TestPage::Out;
                    self.room -= 1;
                    self.now_ns += self.page_ns;
                }
                _ => {}
            }
        }
        true
    }
}

impl SwapSystem for &mut SwapMachine {
    fn placed(&mut self, _: u32, range: AddressRange) -> Option<Vec<PlacedRun>> {
        let mut runs: Vec<PlacedRun> = Vec::new();
        for at in self.indexes(range) {
            let start = BASE + at as u64 * PAGE_BYTES;
            let Some(place) = self.pages[at].place() else {
                continue;
            };
            match runs.last_mut() {
                Some(last) if last.place == place && last.range.end() == start => {
                    last.range.bytes += Bytes(PAGE_BYTES);
                }
                _ => runs.push(PlacedRun {
                    range: AddressRange {
                        start,
                        bytes: Bytes(PAGE_BYTES),
                    },
                    place,
                }),
            }
        }
        Some(runs)
    }

    fn advise(
        &mut self,
        _: u32,
        ranges: &[AddressRange],
        advice: PageAdvice,
    ) -> Result<u64, Refusal> {
        self.calls += 1;
        if !self.is_permitted {
            return Err(Errno::PERM.into());
        }
        let mut done = 0;
        let begun_ns = self.now_ns;
        for range in ranges {
            if advice == PageAdvice::PageOut && !self.page_out(*range) {
                break;
            }
            done += range.bytes.0;
        }
        self.longest_ns = self.longest_ns.max(self.now_ns - begun_ns);
        match done {
            0 => Err(Errno::INVAL.into()),
            done => Ok(done),
        }
    }

    fn touch(&mut self, _: u32, pages: &[u64]) -> Result<usize, Refusal> {
        if !self.is_readable {
            return Err(Errno::PERM.into());
        }
        for page in pages {
            let at = ((page - BASE) / PAGE_BYTES) as usize;
            self.pages[at] = TestPage::Memory;
        }
        let bytes = Bytes(pages.len() as u64 * PAGE_BYTES);
        self.memory_room = self.memory_room.saturating_sub(bytes);
        Ok(pages.len())
    }

    fn kept(&mut self, _: u32) -> Vec<KeptRange> {
        let locked = (0..self.pages.len()).filter(|at| self.pages[*at] == TestPage::Locked);
        let kept = locked.map(|at| KeptRange {
            range: AddressRange {
                start: BASE + at as u64 * PAGE_BYTES,
                bytes: Bytes(PAGE_BYTES),
            },
            why: "locked in memory",
        });
        kept.collect()
    }

    fn exclusive(&mut self, _: u32, range: AddressRange) -> Vec<bool> {
        let pages = self.pages[self.indexes(range)].iter();
        pages.map(|page| *page != TestPage::SharedPage).collect()
    }

    fn swap_room(&mut self) -> Bytes {
        self.looks += 1;
        Bytes((self.room as u64).saturating_mul(PAGE_BYTES))
    }

    fn memory_room(&mut self, _: u32) -> Bytes {
        self.memory_room
    }
}

impl ProcessSystem for &mut SwapMachine {
    fn has_ended(&mut self, _: u32) -> bool {
        self.ended
    }

    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }
}
