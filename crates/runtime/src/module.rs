//! Lists the loaded modules (`dl_iterate_phdr`), here and in the session file: by them a return address becomes (build-id or else file
//! name, ELF virtual address), as the names of sites have it ([`of`], [`name`]). Also finds the address of static data ([`address_of`]) and
//! the writable segments, and recognises this library and the unwinder.
//!
//! The loader holds its own lock while it walks its list (`dl_iterate_phdr`), and it allocates under others of
//! its locks, so the walk holds none of ours; the lock here is taken inside the walk, and guards only the appending of
//! records.

use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use isotherm_abi::session::{ModuleRecord, NO_MODULE};
use isotherm_sys::memory::PAGE_BYTES;
use zerocopy::FromZeros;

use crate::delay::WritablePart;
use crate::lock::Lock;
use crate::module_segments::Segments;
use crate::session;
use crate::tables::{self, Tables, part};
use crate::text_area;

/// Most modules, as in the session's layout; a reloaded module takes a new record.
const MODULES_MAX: usize = 1 << 14;

/// State of the loader's list as of the last walk: the number of loads plus unloads, which only grows.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Latest generation in which each module was found.
static SEEN: [AtomicU64; MODULES_MAX] = [const { AtomicU64::new(0) }; MODULES_MAX];
/// Segments of each module; none for one that was unloaded.
static SEGMENTS: [Segments; MODULES_MAX] = [const { Segments::none() }; MODULES_MAX];
/// The module that was found last. Callers lie in few modules, and the program itself, which holds most of them, is
/// the oldest of a hundred.
static RECENT: AtomicU32 = AtomicU32::new(0);
pub(crate) static LOCK: Lock = Lock::new();
/// The mark of each module: 0, [`OWN`] or [`UNWINDER`].
static OPAQUE: [AtomicU8; MODULES_MAX] = [const { AtomicU8::new(0) }; MODULES_MAX];

/// Marks this library, whose frames are skipped.
const OWN: u8 = 1;
/// Marks the unwinder, which allocates while it holds a lock that unwinding takes.
const UNWINDER: u8 = 2;

/// The module that holds an address, or [`NO_MODULE`]. Walks the loader's list again if the
/// address is unknown and the list has changed.
pub(crate) fn of(address: usize) -> u32 {
    let found = find(address);
    if found != NO_MODULE {
        return found;
    }
    refresh();
    find(address)
}

/// Whether the address is in this library.
pub(crate) fn is_own(address: usize) -> bool {
    marked(address, OWN)
}

/// Whether the address is in the unwinder.
pub(crate) fn is_unwinder(address: usize) -> bool {
    marked(address, UNWINDER)
}

fn marked(address: usize, mark: u8) -> bool {
    let module = of(address);
    module != NO_MODULE && OPAQUE[module as usize].load(Ordering::Relaxed) == mark
}

/// Looks at the module that was found last, and then through the known ones, the youngest first.
fn find(address: usize) -> u32 {
    let Some(private) = tables::private() else {
        return NO_MODULE;
    };
    let count = private.header().module_count.load(Ordering::Acquire);
    let holds = |&index: &u32| SEGMENTS[index as usize].hold(address);
    let recent = RECENT.load(Ordering::Relaxed);
    if recent < count && holds(&recent) {
        return recent;
    }
    let Some(found) = (0..count).rev().find(holds) else {
        return NO_MODULE;
    };
    RECENT.store(found, Ordering::Relaxed);
    found
}

/// The name of a module (its build-id, or else its file's name), and the bias of its addresses.
pub(crate) fn name(index: u32) -> Option<(&'static [u8], u64)> {
    let private = tables::private()?;
    if index >= private.header().module_count.load(Ordering::Acquire) {
        return None;
    }
    // SAFETY: records below the count are filled and never change.
    let record = unsafe { &*private.module(index) };
    let bytes = (record.build_id_bytes as usize).min(record.build_id.len());
    Some((&record.build_id[..bytes], record.bias))
}

/// The address of a range of a module by its name, in ELF virtual addresses; `None` where no such module is loaded, or the range
/// is not in it.
pub(crate) fn address_of(module: &[u8], range: Range<u64>) -> Option<usize> {
    let count = tables::private()?
        .header()
        .module_count
        .load(Ordering::Acquire);
    (0..count).find_map(|index| {
        let (known, bias) = name(index)?;
        let start = bias.checked_add(range.start)? as usize;
        let last = bias.checked_add(range.end)? as usize - PAGE_BYTES;
        let segments = &SEGMENTS[index as usize];
        // The first page may begin before its segment, and the last end behind it.
        let holds = |page: usize| segments.hold(page) || segments.hold(page + PAGE_BYTES - 1);
        (known == module && holds(start) && holds(last)).then_some(start)
    })
}

/// Passes the parts of each writable segment of each module but this library to `visit`.
pub(crate) fn for_each_writable(visit: &mut dyn FnMut(WritablePart)) {
    let mut visit = visit;
    // SAFETY: the callback gets the visitor it expects and keeps no pointer.
    unsafe { libc::dl_iterate_phdr(Some(visit_writable), (&raw mut visit).cast()) };
}

/// The headers of the segments of a module that are loaded, with their addresses.
fn loaded<'a>(
    info: &libc::dl_phdr_info,
    headers: &'a [libc::Elf64_Phdr],
) -> impl Iterator<Item = (&'a libc::Elf64_Phdr, Range<usize>)> + Clone + use<'a> {
    let bias = info.dlpi_addr;
    let is_loaded = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD;
    headers.iter().filter(is_loaded).map(move |header| {
        let start = (bias + header.p_vaddr) as usize;
        (header, start..start + header.p_memsz as usize)
    })
}

/// Called by the loader for each module: passes its writable parts to the visitor.
unsafe extern "C" fn visit_writable(
    info: *mut libc::dl_phdr_info,
    _: usize,
    visitor: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid description, and `for_each_writable` its visitor.
    let (info, visit) = unsafe { (&*info, &mut *visitor.cast::<&mut dyn FnMut(WritablePart)>()) };
    // SAFETY: the loader states how many headers there are.
    let headers =
        unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let loaded = loaded(info, headers);
    let own = visit_writable as *const () as usize;
    if loaded.clone().any(|(_, range)| range.contains(&own)) {
        return 0;
    }
    for (header, range) in loaded.filter(|(header, _)| header.p_flags & libc::PF_W != 0) {
        if !range.is_empty() {
            let start = range.start & !(PAGE_BYTES - 1);
            let end = range.end.next_multiple_of(PAGE_BYTES);
            let of_file = range.start + header.p_filesz as usize;
            let of_file = of_file.next_multiple_of(PAGE_BYTES).clamp(start, end);
            for (range, is_of_file) in [(start..of_file, true), (of_file..end, false)] {
                if !range.is_empty() {
                    visit(WritablePart { range, is_of_file });
                }
            }
        }
    }
    0
}

/// The state of one walk of the loader's list.
struct Walk {
    /// Generation of the list; 0 before the first module. The loader's lock keeps it constant.
    generation: u64,
}

/// Walks the loader's list if it changed since the last walk. Unloaded modules are not found any more; a module
/// at a new address, or another one at the same address, is new.
pub(crate) fn refresh() {
    let mut walk = Walk { generation: 0 };
    // SAFETY: the callback gets the walk it expects and keeps no pointer.
    let stopped = unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut walk).cast()) };
    if stopped != 0 {
        return;
    }
    let Some(private) = tables::private() else {
        return;
    };
    let count = private.header().module_count.load(Ordering::Acquire);
    for index in 0..count as usize {
        if SEEN[index].load(Ordering::Relaxed) < walk.generation {
            SEGMENTS[index].clear();
        }
    }
    GENERATION.fetch_max(walk.generation, Ordering::Release);
}

/// Called by the loader for each module: notes it in the walk, which stops at the first one if the list is unchanged.
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, size: usize, walk: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description, and `refresh` passed its walk.
    let (info, walk) = unsafe { (&*info, &mut *walk.cast::<Walk>()) };
    if size < size_of::<libc::dl_phdr_info>() {
        return 1;
    }
    if walk.generation == 0 {
        walk.generation = info.dlpi_adds + info.dlpi_subs;
        if walk.generation == GENERATION.load(Ordering::Acquire) {
            return 1;
        }
    }
    // SAFETY: the loader keeps headers and name valid during the call.
    unsafe { note(info, walk.generation) };
    0
}

/// Finds the module among the known ones or appends it.
///
/// # Safety
/// The description is the loader's, within its callback.
unsafe fn note(info: &libc::dl_phdr_info, generation: u64) {
    let Some(private) = tables::private() else {
        return;
    };
    // SAFETY: the loader states how many headers there are.
    let headers =
        unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let segments = loaded(info, headers).map(|(_, segment)| segment);
    let start = segments.clone().map(|segment| segment.start).min();
    let end = segments.clone().map(|segment| segment.end).max();
    let (Some(start), Some(end)) = (start, end) else {
        return;
    };
    // SAFETY: the note segments of a loaded module are mapped.
    let mut record = unsafe { describe(info, headers) };
    record.end = end as u64;
    // A search could never find a module without an address range.
    if start == 0 || start >= end {
        return;
    }
    let Some(_guard) = LOCK.lock() else { return };
    let count = private.header().module_count.load(Ordering::Relaxed);
    for index in (0..count).rev() {
        // SAFETY: records below the count are filled.
        let known = unsafe { &*private.module(index) };
        if SEGMENTS[index as usize].start() == start
            && known.end == record.end
            && known.build_id == record.build_id
        {
            SEEN[index as usize].fetch_max(generation, Ordering::Relaxed);
            return;
        }
    }
    // SAFETY: the name is a string of the loader.
    unsafe { append(private, info, record, segments, generation) };
}

/// Appends a record; the caller holds the lock.
///
/// # Safety
/// The description is the loader's, within its callback.
unsafe fn append(
    private: &Tables,
    info: &libc::dl_phdr_info,
    mut record: ModuleRecord,
    segments: impl Iterator<Item = Range<usize>>,
    generation: u64,
) {
    let index = private.header().module_count.load(Ordering::Relaxed);
    if index as usize >= MODULES_MAX || index >= private.layout().module_slots {
        return;
    }
    let mut program = [0u8; 4096];
    // SAFETY: the loader's name is a string, or null.
    let path = unsafe { path(info, &mut program) };
    if record.has_build_id == 0 {
        let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let bytes = file.len().min(record.build_id.len());
        record.build_id[..bytes].copy_from_slice(&file[..bytes]);
        record.build_id_bytes = bytes as u32;
    }
    if let Some(place) = text_area::append(&[path]) {
        record.path_offset = place;
        record.path_bytes = path.len() as u32;
    }
    let places = &SEGMENTS[index as usize];
    places.set(segments);
    let mark = if places.hold(refresh as *const () as usize) {
        OWN
    } else if path.windows(8).any(|part| part == b"libgcc_s") {
        UNWINDER
    } else {
        0
    };
    OPAQUE[index as usize].store(mark, Ordering::Relaxed);
    SEEN[index as usize].fetch_max(generation, Ordering::Relaxed);
    for tables in session::both(private, part::MODULES, index) {
        // SAFETY: the place is within the tables and is not published yet; the record holds only integers.
        unsafe {
            tables
                .module(index)
                .copy_from_nonoverlapping(&raw const record, 1)
        };
        let count = &tables.header().module_count;
        count.store(index + 1, Ordering::Release);
    }
}

/// The module's file; the loader has no name for the program itself.
///
/// # Safety
/// The description is the loader's, within its callback.
unsafe fn path<'a>(info: &'a libc::dl_phdr_info, program: &'a mut [u8; 4096]) -> &'a [u8] {
    if !info.dlpi_name.is_null() {
        // SAFETY: the loader's name is a string.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        if !name.is_empty() {
            return name;
        }
    }
    let bytes = rustix::fs::readlinkat_raw(rustix::fs::CWD, c"/proc/self/exe", &mut program[..]);
    &program[..bytes.unwrap_or(0)]
}

/// Bias and build-id, read from the note segments in memory.
///
/// # Safety
/// The module is mapped.
unsafe fn describe(info: &libc::dl_phdr_info, headers: &[libc::Elf64_Phdr]) -> ModuleRecord {
    let mut record = ModuleRecord {
        bias: info.dlpi_addr,
        ..ModuleRecord::new_zeroed()
    };
    for header in headers
        .iter()
        .filter(|header| header.p_type == libc::PT_NOTE)
    {
        let loaded = headers.iter().any(|load| {
            load.p_type == libc::PT_LOAD
                && load.p_vaddr <= header.p_vaddr
                && header.p_vaddr + header.p_memsz <= load.p_vaddr + load.p_filesz
        });
        if !loaded {
            continue;
        }
        let address = info.dlpi_addr + header.p_vaddr;
        // SAFETY: the notes are within a segment that is loaded from the file.
        let notes = unsafe {
            core::slice::from_raw_parts(
                core::ptr::with_exposed_provenance::<u8>(address as usize),
                header.p_memsz as usize,
            )
        };
        if let Some(build_id) = build_id(notes) {
            let bytes = build_id.len().min(record.build_id.len());
            record.build_id[..bytes].copy_from_slice(&build_id[..bytes]);
            record.build_id_bytes = bytes as u32;
            record.has_build_id = 1;
            break;
        }
    }
    record
}

/// The descriptor of the GNU build-id note, `None` where there is none.
///
/// ```text
/// | name size | descriptor size | type = 3 | "GNU\0" | descriptor ... |   each padded to 4 bytes
/// ```
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let word = |at: usize| {
            let bytes = notes.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?) as usize)
        };
        let (name, descriptor, kind) = (word(0)?, word(4)?, word(8)?);
        let name_end = 12usize.checked_add(name)?;
        let start = name_end.checked_next_multiple_of(4)?;
        let end = start.checked_add(descriptor)?;
        if kind == 3 && notes.get(12..name_end)? == b"GNU\0" && descriptor > 0 {
            return notes.get(start..end);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use isotherm_abi::session::{NO_MODULE, SessionLayout};

    use super::build_id;
    use crate::tables;

    /// Tells the module list of a module with these segments, as the loader would.
    fn load(name: &CStr, segments: &[(usize, usize)]) -> u32 {
        let headers: Vec<_> = segments
            .iter()
            .map(|&(address, bytes)| libc::Elf64_Phdr {
                p_type: libc::PT_LOAD,
                p_flags: libc::PF_R,
                p_offset: 0,
                p_vaddr: address as u64,
                p_paddr: 0,
                p_filesz: bytes as u64,
                p_memsz: bytes as u64,
                p_align: 4096,
            })
            .collect();
        // SAFETY: all zeroes are a description without a module.
        let mut info: libc::dl_phdr_info = unsafe { core::mem::zeroed() };
        info.dlpi_name = name.as_ptr();
        info.dlpi_phdr = headers.as_ptr();
        info.dlpi_phnum = headers.len() as u16;
        // SAFETY: headers and name live until the end of the call, and there are no notes.
        unsafe { super::note(&info, 1) };
        super::find(segments[0].0)
    }

    #[test]
    fn an_address_between_two_segments_belongs_to_the_module_that_is_mapped_there() {
        const BASE: usize = 0x10_0000;
        tables::create_private(SessionLayout::for_pool(1 << 30)).expect("tables");
        let outer = load(c"/outer.so", &[(BASE, 0x1000), (BASE + 0x8000, 0x1000)]);
        assert_ne!(outer, NO_MODULE);
        assert_eq!(super::find(BASE + 0x8fff), outer);
        let gap = BASE + 0x4000;
        assert_eq!(super::find(gap), NO_MODULE, "not known yet");
        let inner = load(c"/inner.so", &[(gap, 0x1000)]);
        assert!(inner != NO_MODULE && inner != outer);
        for _ in 0..2 {
            assert_eq!(super::find(BASE + 0x10), outer);
            assert_eq!(super::find(gap + 0x10), inner);
            assert_eq!(super::find(BASE + 0x8010), outer);
        }
        assert_eq!(super::find(gap + 0x1000), NO_MODULE);
    }

    fn note(name: &[u8], kind: u32, descriptor: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [name.len() as u32, descriptor.len() as u32, kind] {
            bytes.extend(word.to_ne_bytes());
        }
        for part in [name, descriptor] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn the_build_id_is_found_behind_another_note() {
        let mut notes = note(b"GNU\0", 1, &[1, 2, 3]);
        notes.extend(note(b"GNU\0", 3, &[0xab; 20]));
        assert_eq!(build_id(&notes), Some(&[0xab; 20][..]));
    }

    #[test]
    fn notes_that_are_cut_short_or_lie_about_their_size_hold_none() {
        let whole = note(b"GNU\0", 3, &[0xab; 20]);
        for bytes in 0..whole.len() {
            assert_eq!(build_id(&whole[..bytes]), None);
        }
        let mut lying = whole;
        lying[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(build_id(&lying), None);
    }
}
