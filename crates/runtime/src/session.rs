//! Makes the session file of this process, through which the runtime reports to the observer (the `isotherm` process outside), takes room
//! in it before a record is written, and gives a forked child a file of its own. Also records and prints why the runtime or a part of it is
//! off ([`off`]), and ends publication where the file cannot be written.
//!
//! Invariants:
//! - A child never writes into its parent's file. The address of the file's mapping is in a page that the
//!   kernel wipes in every child (`MADV_WIPEONFORK`), so even a child of a plain `clone` finds none; it makes
//!   its own at the first event that needs a record.
//! - A full disk never kills the program: a store into a hole of a mapped file would raise SIGBUS, so room is
//!   taken with `fallocate` before a granule is first written.
//! - No descriptor stays open, because programs close and count theirs.
//! - The file size limit never kills the program: it is checked before the file is extended.
//! - No file of another user is written or trusted: directory and file are opened by the rules of
//!   [`isotherm_sys::private`], each time. A removed directory ends publication without a message: the recorder
//!   of the program has ended.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use isotherm_abi::page_tiers::CHUNK_PAGES;
use isotherm_abi::session::{OffReason, SessionCounter, SessionHeader, SessionLayout};
use isotherm_sys::descriptor::Descriptor;
use isotherm_sys::memory;
use isotherm_sys::private::{self, PrivateError};
use rustix::fs::{self, FallocateFlags, OFlags};
use rustix::io::Errno;
use rustix::process::Resource;

use crate::clock;
use crate::config::{self, Config};
use crate::lock::Lock;
use crate::message;
use crate::path::{PATH_BYTES, Path};
use crate::published_tiers;
use crate::tables::{self, Part, SessionTables, Tables, part};

/// The tables in the session file, in the form of the rest of this library.
pub(crate) type Session = Tables;

/// Room in the file is taken in granules of this many bytes.
const GRANULE_BYTES: u64 = 64 << 10;

/// Most granules; 4 GiB, a pool of 500 TiB.
const GRANULES: usize = 1 << 16;

/// Room for the name of a file, two numbers and a dot.
const NAME_BYTES: usize = 32;

/// Names that a process tries before it gives up: earlier programs of its number (before an exec, too) left files.
const ATTEMPTS: u32 = 4096;

static LOCK: Lock = Lock::new();
/// The page that the kernel wipes in every child.
static CURRENT: AtomicPtr<Current> = AtomicPtr::new(core::ptr::null_mut());
static WANTED: AtomicBool = AtomicBool::new(false);
static START_PID: AtomicU32 = AtomicU32::new(0);
/// Pages of static data whose tiers are published.
static STATIC_PAGES: AtomicUsize = AtomicUsize::new(0);
/// The name of the current file in [`DIRECTORY`].
static FILE: CurrentName = CurrentName(UnsafeCell::new(Path::new()));
static TAKEN: [AtomicU64; GRANULES / 64] = [const { AtomicU64::new(0) }; GRANULES / 64];
static DIRECTORY: OnceLock<Path> = OnceLock::new();

/// See [`FILE`].
struct CurrentName(UnsafeCell<Path<NAME_BYTES>>);

// SAFETY: it is written under the lock while no file is published, and read where one is.
unsafe impl Sync for CurrentName {}

/// The content of the wiped page.
struct Current {
    /// Address of `tables` once they are there; 0 where nothing is published.
    address: AtomicUsize,
    tables: UnsafeCell<MaybeUninit<Tables>>,
}

impl Current {
    fn get() -> Option<&'static Self> {
        // SAFETY: null, or a page that is never unmapped; zeroes are a valid value.
        unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
    }

    /// Stops publication.
    fn clear() {
        if let Some(current) = Self::get() {
            current.address.store(0, Ordering::Release);
        }
    }
}

/// The published tables of this process; `None` where nothing is published, and in a forked child before its
/// first event. Lock-free.
#[inline]
pub(crate) fn current() -> Option<&'static Session> {
    let address = Current::get()?.address.load(Ordering::Acquire);
    // SAFETY: 0, or the address of tables that were written before it was stored and change only
    // in a child, before it has a second thread.
    unsafe { core::ptr::with_exposed_provenance::<Tables>(address).as_ref() }
}

/// The published tables that the emulations read and write.
pub(crate) fn tables() -> Option<SessionTables> {
    current().map(Session::tables)
}

/// The published tables if `bytes` bytes at `offset` may be stored to; takes room for them.
pub(crate) fn writable(offset: u64, bytes: u64) -> Option<&'static Session> {
    let session = current()?;
    let first = offset / GRANULE_BYTES;
    let last = (offset + bytes.max(1) - 1) / GRANULE_BYTES;
    for granule in first..=last {
        let bit = 1 << (granule % 64);
        let word = &TAKEN[(granule / 64) as usize];
        if word.load(Ordering::Acquire) & bit == 0 {
            take_room(session, granule)?;
            word.fetch_or(bit, Ordering::Release);
        }
    }
    Some(session)
}

/// The published tables if this record of a part may be stored to; takes room for it.
pub(crate) fn with_record<T>(part: Part<T>, index: impl Into<u64>) -> Option<&'static Session> {
    let (before, bytes) = (part.bytes(index), part.bytes(1_u64));
    writable(current()?.offset(part) + before, bytes)
}

/// The private tables, and then the published ones if this record of a part may be stored to. They are asked for after the private record
/// was changed: a file that is made meanwhile has a copy of it.
pub(crate) fn both<T>(
    private: &Tables,
    part: Part<T>,
    index: u32,
) -> impl Iterator<Item = &Tables> {
    let published = core::iter::once_with(move || with_record(part, index));
    core::iter::once(private).chain(published.flatten())
}

/// Takes room for one granule; publication ends where there is none.
fn take_room(session: &Session, granule: u64) -> Option<()> {
    let end = session.offset(part::END);
    let start = granule * GRANULE_BYTES;
    let bytes = GRANULE_BYTES.min(end - start);
    let Some(file) = open_again() else {
        // The program changed its root or its user, or its observer has ended. Its output must not change.
        withdraw();
        return None;
    };
    match fs::fallocate(&file, FallocateFlags::KEEP_SIZE, start, bytes) {
        Ok(()) => {
            session.touch(start, bytes);
            Some(())
        }
        Err(error) => {
            give_up(Unpublished::of(error));
            None
        }
    }
}

/// Takes room for the tiers of the pool's pages below this one, which may be published from now on.
pub(crate) fn publish_tiers_below(page: u64) {
    let ready = published_tiers::ready() as u64;
    let Some(session) = current().filter(|_| published_tiers::is_open() && page > ready) else {
        return;
    };
    let page = page.min(session.layout().page_slots);
    if writable(
        session.offset(part::PAGE_TIERS) + ready,
        page.saturating_sub(ready),
    )
    .is_some()
    {
        published_tiers::have_room_below(page as usize);
    }
}

/// Takes room for the tiers of this many pages of static data, in this file and in those of forked children, and publishes them there.
pub(crate) fn publish_static_tiers(pages: usize) {
    STATIC_PAGES.store(pages, Ordering::Relaxed);
    if let Some(session) = current().filter(|_| published_tiers::is_open()) {
        open_static_tiers(session);
    }
}

/// As [`publish_static_tiers`], in this file. Without room for them they are not published.
fn open_static_tiers(session: &Session) {
    let tiers = session.static_tiers();
    let pages = STATIC_PAGES.load(Ordering::Relaxed).min(tiers.len());
    if pages > 0 && writable(session.offset(part::STATIC_TIERS), pages as u64).is_some() {
        published_tiers::open_statics(&tiers[..pages]);
    }
}

/// The file of this process. It is opened each time room is needed, which is rare: the program could close a
/// descriptor that stayed open, and its number mean another file afterwards.
fn open_again() -> Option<Descriptor> {
    let directory = open_directory().ok()?;
    // SAFETY: a file is published or being made by this thread, so no thread writes the name.
    let name = unsafe { &*FILE.0.get() };
    private::open_file(directory, name.as_c_str()?, OFlags::RDWR).ok()
}

/// The directory of the session files, if it is still this user's own.
fn open_directory() -> Result<Descriptor, PrivateError> {
    let gone = PrivateError::Unopened(Errno::NOENT);
    let path = DIRECTORY.get().and_then(Path::as_c_str).ok_or(gone)?;
    private::open_directory(path)
}

/// The reason why nothing is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unpublished {
    /// The observer of the program has ended, or the program has given up the right to write.
    Silent,
    /// A reason to report to the user.
    Said(OffReason),
}

impl Unpublished {
    /// The reason behind an error of the kernel.
    const fn of(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM | Errno::ROFS => {
                Self::Silent
            }
            _ => Self::Said(OffReason::NoSession),
        }
    }
}

impl From<PrivateError> for Unpublished {
    fn from(error: PrivateError) -> Self {
        match error {
            PrivateError::Unopened(error) => Self::of(error),
            PrivateError::OtherUser | PrivateError::Writable | PrivateError::OtherKind => {
                Self::Said(OffReason::Foreign)
            }
        }
    }
}

/// Records in the session and says, once a process, that Isotherm is off or gave something up.
pub(crate) fn off(reason: OffReason) {
    if let Some(tables) = tables() {
        tables.publish_off(reason);
    }
    message::off(reason);
}

/// Ends publication, and says why where the user can do something about it.
fn give_up(why: Unpublished) {
    if let Unpublished::Said(reason) = why {
        off(reason);
    }
    withdraw();
}

/// Ends publication for this process.
fn withdraw() {
    WANTED.store(false, Ordering::Release);
    Current::clear();
    if let Some(private) = tables::private() {
        // The child's own file begins with its own allocations.
        private.header().objects.written.store(0, Ordering::Relaxed);
    }
    published_tiers::close();
}

/// Adds to a counter, if anything is published.
pub(crate) fn count(counter: SessionCounter, amount: u64) {
    if amount > 0
        && let Some(session) = current()
    {
        session
            .counter(counter)
            .fetch_add(amount, Ordering::Relaxed);
    }
}

/// Remembers where session files go, and makes the first. Called once, at start, after the configuration was installed.
pub(crate) fn start(directory: &CStr) {
    let mut path = Path::new();
    let fits = directory.count_bytes() + NAME_BYTES <= PATH_BYTES
        && path.push(directory.to_bytes()).is_some();
    if !fits || directory.is_empty() || DIRECTORY.set(path).is_err() {
        off(OffReason::NoSession);
        return;
    }
    let Ok(page) = memory::fresh(4096) else {
        return;
    };
    // SAFETY: the page was mapped just now. Kernels before 4.14 do not know the advice; there
    // `after_fork_child` alone keeps a child out of the file.
    let _ = unsafe { memory::advise(page, 4096, libc::MADV_WIPEONFORK) };
    START_PID.store(process(), Ordering::Relaxed);
    CURRENT.store(
        core::ptr::with_exposed_provenance_mut(page),
        Ordering::Release,
    );
    WANTED.store(true, Ordering::Release);
    ensure();
}

/// Whether a session file is written, or will be at the first event of this process.
pub(crate) fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed)
}

/// Makes the session file of this process if it has none yet: at start, and in a forked child at
/// its first event. Takes only the locks of modules above this one in the list of `lib.rs`.
#[inline]
pub(crate) fn ensure() {
    if WANTED.load(Ordering::Relaxed) && current().is_none() {
        make();
    }
}

/// Makes the file. A function of its own, because it needs more stack than every signal handler has.
#[cold]
#[inline(never)]
fn make() {
    let Some(_guard) = LOCK.lock() else { return };
    if current().is_some() {
        return;
    }
    let Some(private) = tables::private() else {
        return;
    };
    if let Err(why) = create(private) {
        give_up(why);
    }
}

/// Takes the lock before a fork.
pub(crate) fn before_fork() {
    LOCK.acquire();
}

/// Releases the lock after a fork, in the parent.
pub(crate) fn after_fork_parent() {
    LOCK.release();
}

/// Drops the parent's file in a child.
pub(crate) fn after_fork_child() {
    LOCK.release();
    Current::clear();
    published_tiers::close();
}

/// This process.
fn process() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get() as u32
}

/// Makes a new file, `<pid>.<n>`.
fn open_new() -> Result<Descriptor, Unpublished> {
    let directory = open_directory()?;
    let pid = process();
    for number in 0..ATTEMPTS {
        let mut name = Path::new();
        // Two numbers always fit.
        let _ = write!(name, "{pid}.{number}");
        let Some(text) = name.as_c_str() else { break };
        match private::create_file(&directory, text) {
            Ok(file) => {
                // SAFETY: the caller holds the lock and has published nothing.
                unsafe { *FILE.0.get() = name };
                return Ok(file);
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Unpublished::of(error)),
        }
    }
    Err(Unpublished::Said(OffReason::NoSession))
}

/// Makes, maps, fills and publishes the file.
fn create(private: &'static Tables) -> Result<(), Unpublished> {
    const NO_ROOM: Unpublished = Unpublished::Said(OffReason::NoSession);
    let layout = *private.layout();
    let bytes = tables::bytes(&layout);
    let limit = rustix::process::getrlimit(Resource::Fsize).current;
    if limit.is_some_and(|limit| limit < bytes) {
        return Err(NO_ROOM);
    }
    let file = open_new()?;
    fs::ftruncate(&file, bytes).map_err(Unpublished::of)?;
    // SAFETY: without MAP_FIXED the kernel picks a range that no mapping uses.
    let base = unsafe {
        memory::map(
            0,
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    }
    .map_err(|_| NO_ROOM)?;
    for word in &TAKEN {
        word.store(0, Ordering::Relaxed);
    }
    let current = Current::get().ok_or(NO_ROOM)?;
    // SAFETY: the mapping is as long as the layout says and is never unmapped while it is
    // current; the lock keeps other writers of the place away, and no reader comes before the
    // address is stored below.
    let session = unsafe { (*current.tables.get()).write(Tables::at(base, layout)) };
    let config = config::current().ok_or(NO_ROOM)?;
    let header = new_header(private, &layout, config);
    // Room that was fallocated before the header is stored cannot raise SIGBUS.
    take_room(session, 0).ok_or(Unpublished::Silent)?;
    TAKEN[0].fetch_or(1, Ordering::Release);
    // SAFETY: the header is at the start of the fresh mapping.
    unsafe { session.header_mut().write(header) };
    let address = core::ptr::from_mut(session).expose_provenance();
    current.address.store(address, Ordering::Release);
    // A thread that changed a private record before the line above did not publish it, and the copy below comes
    // after, so nothing is missed; a thread that publishes meanwhile stores the same. Where there is no room
    // for all of it, the function that found this out has reported it.
    copy(private, session, config).ok_or(Unpublished::Silent)
}

/// The header of a new file.
fn new_header(private: &Tables, layout: &SessionLayout, config: &Config) -> SessionHeader {
    let mut header = layout.header(config.mode, config.depth as u32);
    let known = private.header();
    header.pid = process();
    header.parent_pid = if header.pid == START_PID.load(Ordering::Relaxed) {
        header.pid
    } else {
        rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get() as u32)
    };
    header.start_ns = clock::now_ns();
    header.pool_base = known.pool_base;
    header.pool_bytes = known.pool_bytes;
    header.accesses.period = config.access_period;
    header.shadow_offset.store(
        known.shadow_offset.load(Ordering::Relaxed),
        Ordering::Relaxed,
    );
    header
}

/// Copies the used records of the private tables into a new file.
fn copy(private: &Tables, session: &Session, config: &Config) -> Option<()> {
    let known = private.header();
    let told = session.header();
    let layout = private.layout();
    let modules = known.module_count.load(Ordering::Acquire);
    let sites = known.site_count.load(Ordering::Acquire);
    let arenas = known.arena_count.load(Ordering::Acquire);
    let mappings = known.mapping_count.load(Ordering::Acquire);
    let text = known.text_bytes.load(Ordering::Acquire);
    copy_records(private, session, part::TEXT, text)?;
    copy_records(private, session, part::MODULES, modules)?;
    copy_records(private, session, part::SITES, sites)?;
    copy_records(private, session, part::ARENAS, arenas)?;
    copy_records(private, session, part::MAPPINGS, mappings)?;
    copy_chunks(private, session, layout.chunk_slots as usize)?;
    if config.trapping.pages > 0 {
        let ring = part::TOUCHES.bytes(layout.touch_slots);
        writable(session.offset(part::TOUCHES), ring)?;
    }
    if layout.region_slots > 0 {
        let regions = part::REGIONS.bytes(layout.region_slots);
        writable(session.offset(part::REGIONS), regions)?;
    }
    if layout.page_slots > 0 {
        let ring = part::PAGE_REQUESTS.bytes(layout.request_slots());
        writable(session.offset(part::PAGE_REQUESTS), ring)?;
        let header = session.tables().header;
        published_tiers::open(session.page_tiers(), &header.pages.used);
        open_static_tiers(session);
        let used = tables::chunks_ever_used() as u64;
        publish_tiers_below(used * CHUNK_PAGES);
    }
    // A thread that published more meanwhile has raised the counts already.
    told.text_bytes.fetch_max(text, Ordering::Release);
    told.module_count.fetch_max(modules, Ordering::Release);
    told.site_count.fetch_max(sites, Ordering::Release);
    told.arena_count.fetch_max(arenas, Ordering::Release);
    told.mapping_count.fetch_max(mappings, Ordering::Release);
    Some(())
}

/// Copies the first `count` records of a part as whole words, each atomically: another thread may be changing them.
fn copy_records<T>(private: &Tables, session: &Session, part: Part<T>, count: u32) -> Option<()> {
    if count == 0 {
        return Some(());
    }
    let bytes = part.bytes(count);
    let offset = private.offset(part);
    writable(offset, bytes)?;
    for at in (offset..offset + bytes.next_multiple_of(8)).step_by(8) {
        let from = core::ptr::from_ref(private.byte(at)).cast::<AtomicU64>();
        let to = core::ptr::from_ref(session.byte(at)).cast::<AtomicU64>();
        // SAFETY: parts begin on page boundaries and are whole pages long, so the eight bytes are
        // within both tables and are aligned.
        unsafe { (*to).store((*from).load(Ordering::Acquire), Ordering::Release) };
    }
    Some(())
}

/// Publishes the owners of the chunks that have one.
fn copy_chunks(private: &Tables, session: &Session, chunks: usize) -> Option<()> {
    let used = tables::chunks_ever_used().min(chunks);
    for index in 0..used {
        let owner = private.chunk(index).load(Ordering::Acquire);
        if owner != 0 {
            writable(session.offset(part::CHUNKS) + index as u64 * 4, 4)?;
            session.chunk(index).store(owner, Ordering::Release);
        }
    }
    Some(())
}
