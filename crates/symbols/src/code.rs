//! [`Code`] holds the code of observed processes: it follows their executable mappings, finds the data address of a sample by decoding the
//! instruction, and numbers the sampled instructions. [`open_mapped`] opens the file of a mapping if it is still the same file.
//!
//! A *code space* is the executable part of an address space. A forked process shares the code
//! space of its parent until either of them runs another program or maps other code, so decoded
//! instructions are shared by all workers of a server.
//!
//! Code comes from the mapped file first: that works after the process has ended and needs no right
//! to read its memory. Code without a file (just-in-time compilers, `[vdso]`) comes from
//! `/proc/pid/mem` and is decoded again each epoch, because it may be rewritten in place.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use isotherm_decode::{
    AccessOrder, Architecture, BYTES_AFTER, BYTES_BEFORE, NearbyAccess, OperandAccess, Window,
    operand_access,
};
use isotherm_model::code_access::{AccessKind, InstructionId, SampledInstruction};
use isotherm_sys::file_root::FileRoot;
use isotherm_sys::files::open_input;
use isotherm_sys::memory_map::mapped_ranges;
use isotherm_sys::perf::record::{Mapping, PerfSample};

use crate::instruction_table::InstructionTable;

/// Most decoded instructions kept for one code space; a program's hot code is far smaller. A full
/// cache is emptied, because the hot part is quickly decoded again.
const DECODED_AT_MOST: usize = 1 << 17;

/// Most executable mappings recorded for one code space, `vm.max_map_count` by default.
const MAPPINGS_AT_MOST: usize = 65_530;

/// Code without a known mapping is read from the start of its page: the page before may not be
/// mapped.
const PAGE: u64 = 4096;

/// Most files kept open.
const FILES_AT_MOST: usize = 256;

/// An executable mapping.
#[derive(Clone, Debug)]
struct CodeMapping {
    end: u64,
    file_offset: u64,
    inode: u64,
    path: PathBuf,
}

/// One code space.
#[derive(Clone, Debug, Default)]
struct CodeSpace {
    /// Number of processes that share it.
    users: usize,
    mappings: BTreeMap<u64, CodeMapping>,
    /// Accesses decoded from files: valid until the mapping changes.
    decoded: HashMap<u64, Option<NearbyAccess>>,
    /// Accesses decoded from memory: valid for one epoch.
    volatile: HashMap<u64, Option<NearbyAccess>>,
    /// Numbers of sampled instructions of files, valid as `decoded`.
    numbers: HashMap<SampledPlace, Option<InstructionId>>,
}

/// What the instruction pointer of a sample points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampledPlace {
    /// The instruction that made the access, from sources that give the data address.
    Access(u64),
    /// An instruction near it, which the decoder finds.
    Near(u64),
}

impl SampledPlace {
    const fn address(self) -> u64 {
        match self {
            Self::Access(address) | Self::Near(address) => address,
        }
    }
}

/// Code around an instruction pointer, as it was read.
struct ReadCode {
    bytes: [u8; BYTES_BEFORE + BYTES_AFTER],
    length: usize,
    start: u64,
    ip: u64,
    is_from_file: bool,
}

impl ReadCode {
    fn window(&self) -> Window<'_> {
        Window {
            code: &self.bytes[..self.length],
            start: self.start,
            ip: self.ip,
        }
    }
}

/// The data that a sample accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledData {
    /// Its address.
    pub address: u64,
    /// When it is accessed.
    pub order: AccessOrder,
    /// Where the object that holds it may begin: the base register of the operand, 0 without one, and the address without the
    /// displacement.
    pub bases: [u64; 2],
}

impl SampledData {
    /// Whether the sample was taken behind the access, and not before it.
    #[must_use]
    pub fn is_behind_access(&self) -> bool {
        self.order != AccessOrder::Next
    }
}

/// Code of all observed processes.
#[derive(Debug)]
pub struct Code {
    architecture: Architecture,
    proc_root: PathBuf,
    /// The root of the files of the mappings.
    root: FileRoot,
    /// Number of the code space of each process.
    space_of: HashMap<u32, u64>,
    spaces: HashMap<u64, CodeSpace>,
    next_space: u64,
    files: HashMap<(PathBuf, u64), Option<File>>,
    instructions: InstructionTable,
}

impl Code {
    /// Starts without any code; memory of processes is found under this directory (`/proc`).
    #[must_use]
    pub fn new(architecture: Architecture, proc_root: &Path) -> Self {
        Self {
            architecture,
            proc_root: proc_root.to_owned(),
            root: FileRoot::default(),
            space_of: HashMap::new(),
            spaces: HashMap::new(),
            next_space: 0,
            files: HashMap::new(),
            instructions: InstructionTable::default(),
        }
    }

    /// Records a fork: the child runs the same code.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if parent == child || !self.space_of.contains_key(&parent) {
            return;
        }
        self.forget(child);
        let number = self.space_of[&parent];
        self.space_of.insert(child, number);
        if let Some(space) = self.spaces.get_mut(&number) {
            space.users += 1;
        }
    }

    /// Drops the code of a process that ran another program, or ended.
    pub fn forget(&mut self, pid: u32) {
        let Some(number) = self.space_of.remove(&pid) else {
            return;
        };
        if let Some(space) = self.spaces.get_mut(&number) {
            space.users -= 1;
            if space.users == 0 {
                self.spaces.remove(&number);
            }
        }
    }

    /// Records a mapping of code and drops the instructions decoded in its range.
    pub fn map<P: AsRef<[u8]>>(&mut self, mapping: &Mapping<P>) {
        let Some(end) = mapping.address.checked_add(mapping.bytes) else {
            return;
        };
        let space = self.own_space(mapping.pid);
        let range = mapping.address..end;
        space.decoded.retain(|ip, _| !range.contains(ip));
        space.volatile.retain(|ip, _| !range.contains(ip));
        space
            .numbers
            .retain(|place, _| !range.contains(&place.address()));
        space
            .mappings
            .retain(|start, old| *start >= end || old.end <= mapping.address);
        if space.mappings.len() < MAPPINGS_AT_MOST {
            let code = CodeMapping {
                end,
                file_offset: mapping.file_offset,
                inode: mapping.inode,
                path: PathBuf::from(std::ffi::OsStr::from_bytes(mapping.path.as_ref())),
            };
            space.mappings.insert(mapping.address, code);
        }
    }

    /// Records the executable mappings that a process has now, for a process that ran before records of mappings were taken. Where its
    /// mappings may not be read, its code comes from its memory, if that may be read. From now on files are read below its root, also
    /// for other processes: the processes that it starts have that root.
    pub fn map_running(&mut self, pid: u32) {
        self.root = FileRoot::of_process(&self.proc_root, pid);
        let maps = self.proc_root.join(pid.to_string()).join("maps");
        let text = std::fs::read(maps).unwrap_or_default();
        for mapping in mapped_ranges(&text).filter(|mapping| mapping.is_executable) {
            self.map(&Mapping {
                pid,
                address: mapping.range.start,
                bytes: mapping.range.end - mapping.range.start,
                file_offset: mapping.file_offset,
                inode: mapping.inode,
                path: mapping.name,
                time_ns: 0,
            });
        }
    }

    /// Begins another epoch: code that may be rewritten in place is decoded again.
    pub fn begin_epoch(&mut self) {
        for space in self.spaces.values_mut() {
            space.volatile.clear();
        }
    }

    /// The code space of a process, shared or not; an empty one if unknown.
    fn space(&mut self, pid: u32) -> &mut CodeSpace {
        let number = *self.space_of.entry(pid).or_insert_with(|| {
            self.next_space += 1;
            self.next_space
        });
        self.spaces.entry(number).or_insert_with(|| CodeSpace {
            users: 1,
            ..CodeSpace::default()
        })
    }

    /// The code space of a process, separated from processes that shared it.
    fn own_space(&mut self, pid: u32) -> &mut CodeSpace {
        if self.space(pid).users > 1 {
            let copy = self.space(pid).clone();
            self.forget(pid);
            *self.space(pid) = CodeSpace { users: 1, ..copy };
        }
        self.space(pid)
    }

    /// The data that a sample accesses, where its code has an operand.
    pub fn data_address(&mut self, sample: &PerfSample) -> Option<SampledData> {
        let found = self.access(sample.pid, sample.ip)?;
        let address = found.operand.address(&sample.registers)?;
        let base = found.operand.base;
        let base = base.and_then(|number| sample.registers.get(number));
        Some(SampledData {
            address,
            order: found.order,
            bases: [
                base.unwrap_or(0),
                address.wrapping_sub(found.operand.displacement),
            ],
        })
    }

    fn access(&mut self, pid: u32, ip: u64) -> Option<NearbyAccess> {
        let space = self.space(pid);
        if let Some(known) = space.decoded.get(&ip).or_else(|| space.volatile.get(&ip)) {
            return *known;
        }
        let read = self.read_code(pid, ip);
        let found = read
            .as_ref()
            .and_then(|code| isotherm_decode::access(self.architecture, &code.window()));
        let space = self.space(pid);
        let cache = match read.is_some_and(|code| code.is_from_file) {
            true => &mut space.decoded,
            false => &mut space.volatile,
        };
        if cache.len() >= DECODED_AT_MOST {
            cache.clear();
        }
        cache.insert(ip, found);
        found
    }

    /// The number of the instruction that made the access of a sample; `None` where it is not found, or there are too many.
    pub fn instruction(&mut self, pid: u32, sampled: SampledPlace) -> Option<InstructionId> {
        if let Some(known) = self.space(pid).numbers.get(&sampled) {
            return *known;
        }
        let found = self.number(pid, sampled);
        let numbers = &mut self.space(pid).numbers;
        if numbers.len() >= DECODED_AT_MOST {
            numbers.clear();
        }
        numbers.insert(sampled, found);
        found
    }

    fn number(&mut self, pid: u32, sampled: SampledPlace) -> Option<InstructionId> {
        let at = match sampled {
            SampledPlace::Access(at) => at,
            SampledPlace::Near(ip) => self.access(pid, ip)?.at,
        };
        let Some((start, code)) = self.mapping(pid, at).filter(|(_, code)| code.inode > 0) else {
            return self.instructions.without_file();
        };
        let read = self.read_code(pid, at);
        let kind = read.and_then(|read| operand_access(self.architecture, &read.window(), at));
        let position = code.file_offset.checked_add(at - start)?;
        let place = (code.path.as_path(), code.inode, position);
        let open = || open_mapped(&self.root, &code.path, code.inode);
        self.instructions
            .in_file(place, open, kind.map(access_kind))
    }

    /// The instructions that [`Self::instruction`] numbered since the last call.
    pub fn take_instructions(&mut self) -> Vec<SampledInstruction> {
        self.instructions.take_fresh()
    }

    /// The mapping that holds an address, with its start.
    fn mapping(&mut self, pid: u32, address: u64) -> Option<(u64, CodeMapping)> {
        let mappings = &self.space(pid).mappings;
        let (start, code) = mappings.range(..=address).next_back()?;
        (address < code.end).then(|| (*start, code.clone()))
    }

    /// The code around an instruction pointer, from the file of its mapping, else from the memory of the process.
    fn read_code(&mut self, pid: u32, ip: u64) -> Option<ReadCode> {
        let mapping = self.mapping(pid, ip);
        let start = mapping
            .as_ref()
            .map_or(ip & !(PAGE - 1), |(start, _)| *start);
        let from = ip.saturating_sub(BYTES_BEFORE as u64).max(start);
        let mut bytes = [0; BYTES_BEFORE + BYTES_AFTER];
        let from_file =
            mapping.and_then(|(start, code)| self.read_file(start, &code, from, &mut bytes));
        let length = from_file.or_else(|| self.read_memory(pid, from, &mut bytes))?;
        Some(ReadCode {
            bytes,
            length,
            start: from,
            ip,
            is_from_file: from_file.is_some(),
        })
    }

    fn read_file(
        &mut self,
        start: u64,
        code: &CodeMapping,
        from: u64,
        bytes: &mut [u8],
    ) -> Option<usize> {
        if code.inode == 0 {
            return None;
        }
        if self.files.len() >= FILES_AT_MOST {
            self.files.clear();
        }
        let file = self
            .files
            .entry((code.path.clone(), code.inode))
            .or_insert_with(|| open_mapped(&self.root, &code.path, code.inode))
            .as_ref()?;
        let wanted =
            usize::try_from(code.end - from).map_or(bytes.len(), |left| left.min(bytes.len()));
        let offset = code.file_offset.checked_add(from - start)?;
        read_some(file, &mut bytes[..wanted], offset)
    }

    /// Reads from `/proc/pid/mem`, opened anew each time: an open descriptor would refer to the memory before an
    /// exec. Code in memory is rare enough.
    fn read_memory(&self, pid: u32, from: u64, bytes: &mut [u8]) -> Option<usize> {
        let memory = File::open(self.proc_root.join(pid.to_string()).join("mem")).ok()?;
        read_some(&memory, bytes, from)
    }
}

/// The number of bytes that were read; `None` for none.
fn read_some(file: &File, bytes: &mut [u8], offset: u64) -> Option<usize> {
    file.read_at(bytes, offset).ok().filter(|read| *read > 0)
}

/// The model's word for the access that the decoder found.
const fn access_kind(access: OperandAccess) -> AccessKind {
    match access {
        OperandAccess::Read => AccessKind::Load,
        OperandAccess::Write => AccessKind::Store,
        OperandAccess::ReadWrite => AccessKind::Both,
    }
}

/// Opens the file of a mapping of a process, below its root, if it is still the same. The path may now be a pipe, on which [`open_input`]
/// does not wait.
#[must_use]
pub fn open_mapped(root: &FileRoot, path: &Path, inode: u64) -> Option<File> {
    let file = open_input(&root.path(path), u64::MAX).ok()?;
    (file.metadata().ok()?.ino() == inode).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::{Code, SampledPlace};
    use isotherm_decode::Architecture;
    use isotherm_model::code_access::AccessKind;
    use isotherm_sys::perf::record::{Mapping, PerfSample, Registers};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    fn sample(pid: u32, ip: u64) -> PerfSample {
        let mut registers = Registers::NONE;
        registers.set(5, 0x7000);
        registers.set(4, 0x8000);
        PerfSample {
            ip,
            pid,
            tid: pid,
            time_ns: 0,
            cpu: 0,
            address: 0,
            weight: 0,
            data_source: 0,
            physical: None,
            registers,
        }
    }

    /// A file with `mov rax, [rdi]` at 0 and `mov rax, [rsi]` at 16, mapped at 0x1000.
    fn mapped(directory: &Path) -> (std::path::PathBuf, u64) {
        let path = directory.join("code");
        let mut bytes = vec![0x90; 64];
        bytes[..3].copy_from_slice(&[0x48, 0x8b, 0x07]);
        bytes[16..19].copy_from_slice(&[0x48, 0x8b, 0x06]);
        std::fs::write(&path, bytes).expect("writes");
        let inode = path.metadata().expect("exists").ino();
        (path, inode)
    }

    fn address(code: &mut Code, pid: u32) -> Option<u64> {
        code.data_address(&sample(pid, 0x1000))
            .map(|data| data.address)
    }

    #[test]
    fn a_child_shares_code_until_it_maps_its_own_and_exec_forgets() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, inode) = mapped(directory.path());
        let mapping = |pid, file_offset| Mapping {
            pid,
            address: 0x1000,
            bytes: 0x20,
            file_offset,
            inode,
            path: path.as_os_str().as_bytes(),
            time_ns: 0,
        };
        // The directory of proc does not exist: only the file can be read, not memory.
        let mut code = Code::new(Architecture::X86, Path::new("/nonexistent"));
        code.map(&mapping(1, 0));
        code.fork(1, 2);
        assert_eq!(address(&mut code, 1), Some(0x7000));
        assert_eq!(address(&mut code, 2), Some(0x7000));
        code.map(&mapping(2, 16));
        assert_eq!(address(&mut code, 2), Some(0x8000));
        assert_eq!(address(&mut code, 1), Some(0x7000));
        code.forget(2);
        assert_eq!(address(&mut code, 2), None);
    }

    #[test]
    fn code_of_a_process_that_runs_already_is_that_of_its_files() {
        let pid = std::process::id();
        let mut code = Code::new(Architecture::X86, Path::new("/proc"));
        code.map_running(pid);
        let own = mapped as *const () as u64;
        let (_, mapping) = code.mapping(pid, own).expect("this very program");
        assert_eq!(Some(mapping.path), std::env::current_exe().ok());
        code.map_running(u32::MAX);
        assert!(code.mapping(u32::MAX, own).is_none());
    }

    #[test]
    fn a_file_that_was_replaced_is_not_decoded() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, inode) = mapped(directory.path());
        let mut code = Code::new(Architecture::X86, Path::new("/nonexistent"));
        code.map(&Mapping {
            pid: 1,
            address: 0x1000,
            bytes: 0x20,
            file_offset: 0,
            inode: inode + 1,
            path: path.as_os_str().as_bytes(),
            time_ns: 0,
        });
        assert_eq!(address(&mut code, 1), None);
    }

    #[test]
    fn samples_near_an_access_are_of_the_instruction_that_makes_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, inode) = mapped(directory.path());
        let mut code = Code::new(Architecture::X86, Path::new("/nonexistent"));
        for pid in [1, 2] {
            code.map(&Mapping {
                pid,
                address: 0x1000 * u64::from(pid),
                bytes: 0x40,
                file_offset: 0,
                inode,
                path: path.as_os_str().as_bytes(),
                time_ns: 0,
            });
        }
        // `mov rax, [rsi]` is at 16, the `nop` behind it at 19.
        let behind = code.instruction(1, SampledPlace::Near(0x1013));
        assert!(behind.is_some());
        assert_eq!(behind, code.instruction(1, SampledPlace::Access(0x1010)));
        assert_eq!(
            behind,
            code.instruction(2, SampledPlace::Near(0x2013)),
            "of one file"
        );
        let other = code.instruction(1, SampledPlace::Near(0x1000));
        assert!(other.is_some() && other != behind);
        let found = code.take_instructions();
        let found: Vec<_> = found.iter().map(|it| (it.offset, it.kind)).collect();
        assert_eq!(
            found,
            [(16, Some(AccessKind::Load)), (0, Some(AccessKind::Load))]
        );
        let unmapped = code.instruction(3, SampledPlace::Access(0x5000));
        assert!(unmapped.is_some(), "code without a file is one instruction");
    }
}
