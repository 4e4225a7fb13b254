//! Finds out from `/proc/self/maps` and the stacks of threads what kind of memory a range of the program is ([`MemoryKind`]): whether it
//! can be named and moved. Used where the program registers memory ([`crate::registered`]).

use core::ops::Range;

use isotherm_sys::memory_map::mapped_range;
use rustix::fs::{Mode, OFlags};

use crate::thread_stacks;
use crate::tls;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    /// Private and writable: the program's own data.
    Own,
    /// A stack, a file, memory shared with other processes, the kernel's own.
    Fixed,
    /// Not mapped, or not as a whole.
    Unmapped,
}

/// Bytes of a line that say something: addresses, permissions, inode and the beginning of the name.
const LINE_BYTES: usize = 128;
/// Most bytes between the stack pointer and the end of a thread's stack.
const STACK_BYTES_MAX: usize = 1 << 30;

/// The kind of a range, not empty. Where the list cannot be read the range counts as the program's own.
pub(crate) fn of(range: &Range<usize>) -> MemoryKind {
    if is_on_stack(range) {
        return MemoryKind::Fixed;
    }
    let Ok(file) = rustix::fs::open(
        c"/proc/self/maps",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    ) else {
        return MemoryKind::Own;
    };
    let mut scan = Scan::new(range.clone());
    let mut line = Line::default();
    let mut block = [0; 4096];
    loop {
        match rustix::io::read(&file, &mut block[..]) {
            Ok(0) => return MemoryKind::Unmapped,
            Ok(bytes) => {
                for &byte in &block[..bytes] {
                    if let Some(kind) = line.add(byte).and_then(|line| scan.see(line)) {
                        let is_own = kind == MemoryKind::Own;
                        let is_stack = is_own && thread_stacks::hold(range, scan.rest.start);
                        return if is_stack { MemoryKind::Fixed } else { kind };
                    }
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return MemoryKind::Own,
        }
    }
}

/// Whether a range is on the stack of this thread, as far as it is in use. The C library keeps a thread's own variables at the end of
/// its stack; the stack of the first thread has a name in the list.
fn is_on_stack(range: &Range<usize>) -> bool {
    let here = 0_u8;
    let (low, high) = (core::ptr::from_ref(&here).addr(), tls::thread_pointer());
    high.checked_sub(low)
        .is_some_and(|bytes| bytes < STACK_BYTES_MAX)
        && range.start <= high
        && low < range.end
}

/// The line being read.
struct Line {
    bytes: [u8; LINE_BYTES],
    length: usize,
    ended: bool,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            bytes: [0; LINE_BYTES],
            length: 0,
            ended: false,
        }
    }
}

impl Line {
    /// Adds a byte; the line once it has ended.
    fn add(&mut self, byte: u8) -> Option<&[u8]> {
        if core::mem::take(&mut self.ended) {
            self.length = 0;
        }
        if byte == b'\n' {
            self.ended = true;
            return Some(&self.bytes[..self.length]);
        }
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
        None
    }
}

/// The search for a range in the list.
struct Scan {
    /// The part that no line has covered yet; begins where the last mapping that was seen ends.
    rest: Range<usize>,
}

impl Scan {
    const fn new(range: Range<usize>) -> Self {
        Self { rest: range }
    }

    /// The answer, if this line gives it.
    fn see(&mut self, line: &[u8]) -> Option<MemoryKind> {
        let mapping = mapped_range(line)?;
        let (first, end) = (mapping.range.start as usize, mapping.range.end as usize);
        if end <= self.rest.start {
            return None;
        }
        if first > self.rest.start {
            return Some(MemoryKind::Unmapped);
        }
        let is_kernels = mapping.name.starts_with(b"[stack") || mapping.name.starts_with(b"[v");
        let is_constant = mapping.inode > 0 && !mapping.is_writable;
        if mapping.is_shared || is_kernels || is_constant {
            return Some(MemoryKind::Fixed);
        }
        self.rest.start = end;
        (self.rest.start >= self.rest.end).then_some(MemoryKind::Own)
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, MemoryKind, Scan, of};

    const LIST: &str = "\
00400000-00401000 r-xp 00000000 fe:00 123                        /bin/app
00401000-00403000 rw-p 00001000 fe:00 123                        /bin/app
00403000-00409000 rw-p 00000000 00:00 0 
00500000-00501000 rw-s 00000000 00:01 9                          /dev/shm/a file
7ff000000000-7ff000021000 rw-p 00000000 00:00 0                          [stack]
";

    fn kind(range: core::ops::Range<usize>) -> Option<MemoryKind> {
        let mut scan = Scan::new(range);
        let mut line = Line::default();
        LIST.bytes()
            .find_map(|byte| line.add(byte).and_then(|line| scan.see(line)))
    }

    #[test]
    fn variables_and_anonymous_memory_are_the_programs_own_and_nothing_else_is() {
        assert_eq!(kind(0x40_1010..0x40_8000), Some(MemoryKind::Own));
        assert_eq!(kind(0x40_0010..0x40_1020), Some(MemoryKind::Fixed));
        assert_eq!(kind(0x50_0000..0x50_0001), Some(MemoryKind::Fixed));
        assert_eq!(
            kind(0x7ff0_0000_0000..0x7ff0_0000_0001),
            Some(MemoryKind::Fixed)
        );
        assert_eq!(kind(0x40_8fff..0x40_9001), Some(MemoryKind::Unmapped));
        assert_eq!(kind(0x40_a000..0x40_a001), Some(MemoryKind::Unmapped));
    }

    #[test]
    fn the_kernels_list_is_understood() {
        static VARIABLE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let at = |address: usize| of(&(address..address + 8));
        assert_eq!(at(core::ptr::from_ref(&VARIABLE).addr()), MemoryKind::Own);
        let local = [1_u64; 8];
        assert_eq!(at(local.as_ptr().addr()), MemoryKind::Fixed);
        assert_eq!(at(of as *const () as usize), MemoryKind::Fixed);
        assert_eq!(at(4096), MemoryKind::Unmapped);
    }
}
