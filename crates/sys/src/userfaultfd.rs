//! [`Userfaultfd`] lets a thread of the program, instead of the kernel, serve faults on missing pages: it registers ranges, reads the
//! faults, fills pages with a copy, and moves pages from one address to another without a copy.
//!
//! Only the parts that the emulation by page trap and the staged move need: *missing* mode on private anonymous memory, `UFFDIO_COPY`, and
//! `UFFDIO_MOVE` (Linux 6.8). The kernel's own accesses (`read(2)` into a trapped buffer) wait for the serving thread like the program's,
//! unless the descriptor was opened for user faults only; [`Userfaultfd::open`] never accepts such a descriptor.
//!
//! Nothing here allocates, and no call goes through libc, so that a thread without the C library's thread-local
//! storage may use all of it.
//!
//! Manual: `userfaultfd(2)`, `ioctl_userfaultfd(2)`, `Documentation/admin-guide/mm/userfaultfd.rst`.

use core::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{self, Opcode, Updater, opcode};
use rustix::mm::UserfaultfdFlags;

use crate::descriptor::Descriptor;
use crate::system_call::call;

/// `UFFD_API`, the only version of the interface so far.
const API: u64 = 0xaa;
/// `UFFD_FEATURE_MOVE`.
const FEATURE_MOVE: u64 = 1 << 16;
/// `UFFDIO_COPY_MODE_DONTWAKE` and `UFFDIO_MOVE_MODE_DONTWAKE`.
const DONT_WAKE: u64 = 1;
/// `UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES`.
const ALLOW_HOLES: u64 = 2;
/// `UFFD_EVENT_PAGEFAULT`.
const EVENT_PAGEFAULT: u8 = 0x12;
/// `UFFDIO_REGISTER_MODE_MISSING`.
const MODE_MISSING: u64 = 1;

const GROUP: u8 = 0xaa;
const IOCTL_API: Opcode = opcode::read_write::<ApiRequest>(GROUP, 0x3f);
const IOCTL_REGISTER: Opcode = opcode::read_write::<RegisterRequest>(GROUP, 0x00);
const IOCTL_UNREGISTER: Opcode = opcode::read::<RangeRequest>(GROUP, 0x01);
const IOCTL_WAKE: Opcode = opcode::read::<RangeRequest>(GROUP, 0x02);
const IOCTL_COPY: Opcode = opcode::read_write::<TransferRequest>(GROUP, 0x03);
const IOCTL_MOVE: Opcode = opcode::read_write::<TransferRequest>(GROUP, 0x05);
/// `USERFAULTFD_IOC_NEW` of `/dev/userfaultfd`.
const IOCTL_NEW: Opcode = opcode::none(GROUP, 0x00);

/// `struct uffdio_api`.
#[repr(C)]
struct ApiRequest {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_range`.
#[repr(C)]
struct RangeRequest {
    start: u64,
    bytes: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
struct RegisterRequest {
    range: RangeRequest,
    mode: u64,
    ioctls: u64,
}

/// `struct uffdio_copy` and `struct uffdio_move`, which have the same layout.
#[repr(C)]
struct TransferRequest {
    to: u64,
    from: u64,
    bytes: u64,
    mode: u64,
    done: i64,
}

const _: () = assert!(size_of::<ApiRequest>() == 24);
const _: () = assert!(size_of::<RegisterRequest>() == 32);
const _: () = assert!(size_of::<TransferRequest>() == 40);

/// `struct uffd_msg`, as the kernel writes it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Message {
    event: u8,
    reserved: [u8; 7],
    flags: u64,
    address: u64,
    feature: u64,
}

const _: () = assert!(size_of::<Message>() == 32);

impl Message {
    /// The first byte of the page that a thread waits for; `None` for an event of another kind, which a
    /// descriptor opened here never delivers.
    #[must_use]
    pub fn page_address(&self) -> Option<usize> {
        (self.event == EVENT_PAGEFAULT).then_some(self.address as usize)
    }
}

/// Why a descriptor could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// No userfaultfd that serves the kernel's own accesses: not built in, or not allowed (needs
    /// `CAP_SYS_PTRACE`, `vm.unprivileged_userfaultfd=1` or access to `/dev/userfaultfd`).
    Unavailable(Errno),
    /// The kernel has no `UFFDIO_MOVE` (before Linux 6.8).
    NoMove,
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes done, from the start of the range.
    pub bytes: usize,
    /// The error that stopped it, `None` where all was done. After a partial transfer the kernel reports
    /// `EAGAIN`; another attempt from there gives the reason.
    pub error: Option<Errno>,
}

/// An open userfaultfd that serves missing pages.
#[derive(Debug)]
pub struct Userfaultfd {
    descriptor: Descriptor,
}

impl Userfaultfd {
    /// Opens a non-blocking descriptor that serves user and kernel accesses and can move pages.
    ///
    /// # Errors
    /// [`OpenError`], which states which of the two is missing.
    pub fn open() -> Result<Self, OpenError> {
        let opened = Self {
            descriptor: Self::descriptor().map_err(OpenError::Unavailable)?,
        };
        let mut request = ApiRequest {
            api: API,
            features: FEATURE_MOVE,
            ioctls: 0,
        };
        // SAFETY: UFFDIO_API is a raw ioctl; the opcode's argument is `struct uffdio_api`, whose
        // layout `ApiRequest` has, and the kernel writes only that struct.
        match unsafe { opened.request::<IOCTL_API, _>(&mut request) } {
            Ok(()) => Ok(opened),
            Err(Errno::INVAL) => Err(OpenError::NoMove),
            Err(error) => Err(OpenError::Unavailable(error)),
        }
    }

    fn descriptor() -> Result<Descriptor, Errno> {
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
        // SAFETY: the call is unsafe because faults of registered ranges wait for the holder; nothing is
        // registered here, and `register` puts that duty on its caller.
        match unsafe { rustix::mm::userfaultfd(flags) } {
            Ok(descriptor) => Ok(descriptor.into()),
            Err(error) => Self::descriptor_from_device(flags).map_err(|_| error),
        }
    }

    fn descriptor_from_device(flags: UserfaultfdFlags) -> Result<Descriptor, Errno> {
        let access = OFlags::RDWR | OFlags::CLOEXEC;
        let device = rustix::fs::open(c"/dev/userfaultfd", access, Mode::empty())?;
        let device = Descriptor::from(device);
        let number = device.as_raw_fd() as usize;
        let arguments = [number, IOCTL_NEW as usize, flags.bits() as usize];
        // SAFETY: USERFAULTFD_IOC_NEW takes the flags by value and touches no memory; it returns a new
        // descriptor that no other code owns.
        unsafe {
            let made = call(libc::SYS_ioctl, arguments)?;
            Ok(OwnedFd::from_raw_fd(made as RawFd).into())
        }
    }

    /// Makes missing pages of the range wait for the holder of this descriptor.
    ///
    /// # Errors
    /// `EINVAL` where the range is not anonymous memory, `EBUSY` where another descriptor has it.
    ///
    /// # Safety
    /// From now on every access to a missing page of the range blocks until the caller resolves it, so the
    /// caller must read messages and resolve them from a thread that never touches the range itself.
    pub unsafe fn register(&self, range: &Range<usize>) -> Result<(), Errno> {
        let mut request = RegisterRequest {
            range: range_request(range),
            mode: MODE_MISSING,
            ioctls: 0,
        };
        // SAFETY: the argument of UFFDIO_REGISTER is `struct uffdio_register`, which
        // `RegisterRequest` mirrors.
        unsafe { self.request::<IOCTL_REGISTER, _>(&mut request) }
    }

    /// Gives the range back to the kernel and wakes all threads that wait in it.
    ///
    /// # Errors
    /// `EINVAL` where the range is not anonymous memory.
    pub fn unregister(&self, range: &Range<usize>) -> Result<(), Errno> {
        let mut request = range_request(range);
        // SAFETY: the argument of UFFDIO_UNREGISTER is `struct uffdio_range`, which
        // `RangeRequest` mirrors.
        unsafe { self.request::<IOCTL_UNREGISTER, _>(&mut request) }
    }

    /// Wakes all threads that wait in the range; a thread that finds the page still missing waits again.
    ///
    /// # Errors
    /// `EINVAL` for a range that is empty or not on page boundaries.
    pub fn wake(&self, range: &Range<usize>) -> Result<(), Errno> {
        let mut request = range_request(range);
        // SAFETY: the argument of UFFDIO_WAKE is `struct uffdio_range`, which `RangeRequest`
        // mirrors.
        unsafe { self.request::<IOCTL_WAKE, _>(&mut request) }
    }

    /// Fills missing pages at `to` with a copy of the bytes at `from` and wakes the threads that wait there.
    ///
    /// Stops with `EEXIST` at a page that is already there (and then wakes no thread).
    ///
    /// # Safety
    /// `to..to + bytes` must be memory whose missing pages hold nothing of value.
    /// `from..from + bytes` must be readable without waiting for this descriptor.
    pub unsafe fn copy(&self, to: usize, from: usize, bytes: usize) -> Transfer {
        // SAFETY: forwarded to the caller.
        unsafe { self.transfer::<IOCTL_COPY>(to, from, bytes, 0) }
    }

    /// Moves the pages at `from` to `to` (`UFFDIO_MOVE`); no byte is copied.
    ///
    /// `wake` selects whether to wake the threads that wait at `to`. Stops with `EEXIST` at a page that is
    /// already at `to`, `ENOENT` at one missing from `from`, `EBUSY` at one that is shared with another process
    /// (after a fork) or pinned.
    ///
    /// # Safety
    /// Both ranges must belong to the caller in the sense that no code holds Rust references into them and that
    /// each thread that accesses `from` afterwards is served.
    pub unsafe fn move_pages(&self, to: usize, from: usize, bytes: usize, wake: bool) -> Transfer {
        let mode = if wake { 0 } else { DONT_WAKE };
        // SAFETY: forwarded to the caller.
        unsafe { self.transfer::<IOCTL_MOVE>(to, from, bytes, mode) }
    }

    /// Moves the present pages of a range, and leaves its holes holes; wakes no thread. The bytes done include
    /// the holes.
    ///
    /// # Safety
    /// As [`Self::move_pages`].
    pub unsafe fn move_present(&self, to: usize, from: usize, bytes: usize) -> Transfer {
        // SAFETY: forwarded to the caller.
        unsafe { self.transfer::<IOCTL_MOVE>(to, from, bytes, DONT_WAKE | ALLOW_HOLES) }
    }

    /// # Safety
    /// `argument` mirrors the struct that this request reads and writes, and what the request does is sound.
    unsafe fn request<const OPCODE: Opcode, T>(&self, argument: &mut T) -> Result<(), Errno> {
        // SAFETY: the caller's promise.
        unsafe { ioctl::ioctl(&self.descriptor, Updater::<OPCODE, T>::new(argument)) }
    }

    unsafe fn transfer<const OPCODE: Opcode>(
        &self,
        to: usize,
        from: usize,
        bytes: usize,
        mode: u64,
    ) -> Transfer {
        let mut request = TransferRequest {
            to: to as u64,
            from: from as u64,
            bytes: bytes as u64,
            mode,
            done: 0,
        };
        // SAFETY: the arguments of UFFDIO_COPY and UFFDIO_MOVE are 40-byte structs that
        // `TransferRequest` mirrors; what happens to the ranges is the caller's promise.
        let answer = unsafe { self.request::<OPCODE, _>(&mut request) };
        Transfer {
            bytes: usize::try_from(request.done).unwrap_or(0),
            error: answer.err(),
        }
    }

    /// Reads the pending faults, at most as many as `messages` holds, and returns their number.
    ///
    /// # Errors
    /// Any error of `read(2)`, except `EAGAIN`, which is 0 messages.
    pub fn read(&self, messages: &mut [Message]) -> Result<usize, Errno> {
        let bytes = size_of_val(messages);
        // SAFETY: `Message` is plain integers without padding, so any bytes the kernel writes are
        // valid, and the slice covers exactly the memory of `messages`.
        let buffer =
            unsafe { core::slice::from_raw_parts_mut(messages.as_mut_ptr().cast::<u8>(), bytes) };
        match rustix::io::read(&self.descriptor, buffer) {
            Ok(read) => Ok(read / size_of::<Message>()),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Userfaultfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn range_request(range: &Range<usize>) -> RangeRequest {
    RangeRequest {
        start: range.start as u64,
        bytes: range.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, OpenError, Userfaultfd};
    use rustix::io::Errno;
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    const PAGE: usize = 4096;

    struct Mapping(usize, usize);

    impl Mapping {
        fn new(bytes: usize, protection: ProtFlags) -> Self {
            // SAFETY: a fresh mapping at an address that the kernel chooses.
            let start = unsafe {
                mmap_anonymous(
                    core::ptr::null_mut(),
                    bytes,
                    protection,
                    MapFlags::PRIVATE | MapFlags::NORESERVE,
                )
            };
            Self(start.expect("mmap") as usize, bytes)
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: the mapping is ours and the test is over.
            let _ = unsafe { munmap(self.0 as *mut _, self.1) };
        }
    }

    fn open() -> Option<Userfaultfd> {
        match Userfaultfd::open() {
            Ok(uffd) => Some(uffd),
            Err(OpenError::NoMove) => {
                isotherm_skip::skip!("this kernel has no UFFDIO_MOVE (Linux 6.8)");
                None
            }
            Err(OpenError::Unavailable(error)) => {
                isotherm_skip::skip!("no userfaultfd that serves kernel accesses: {error}");
                None
            }
        }
    }

    #[test]
    fn a_page_moves_away_and_back_with_its_content() {
        let Some(uffd) = open() else { return };
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        let (home, shadow) = (
            Mapping::new(4 * PAGE, writable),
            Mapping::new(4 * PAGE, writable),
        );
        for mapping in [&home, &shadow] {
            // SAFETY: this thread touches only present pages (it fills them by copy).
            unsafe { uffd.register(&(mapping.0..mapping.0 + mapping.1)) }.expect("register");
        }
        let source = [7_u8; PAGE];
        // SAFETY: the pages are missing and hold nothing; `source` is readable.
        let copied = unsafe { uffd.copy(home.0, source.as_ptr() as usize, PAGE) };
        assert_eq!((copied.bytes, copied.error), (PAGE, None));
        // SAFETY: both mappings are ours, and no thread accesses the page while it is away.
        unsafe {
            let away = uffd.move_pages(shadow.0, home.0, PAGE, false);
            assert_eq!((away.bytes, away.error), (PAGE, None));
            let again = uffd.move_pages(shadow.0 + PAGE, home.0, PAGE, false);
            assert_eq!(again.error, Some(Errno::NOENT), "nothing is left behind");
            let back = uffd.move_pages(home.0, shadow.0, PAGE, true);
            assert_eq!((back.bytes, back.error), (PAGE, None));
            assert_eq!(*((home.0 + 123) as *const u8), 7);
        }
    }

    #[test]
    fn registration_survives_mprotect_of_a_reserved_range() {
        let Some(uffd) = open() else { return };
        let pool = Mapping::new(8 * PAGE, ProtFlags::empty());
        // SAFETY: the only access is by the thread below, which this one serves.
        unsafe { uffd.register(&(pool.0..pool.0 + pool.1)) }.expect("register PROT_NONE");
        // SAFETY: our own mapping.
        unsafe {
            rustix::mm::mprotect(
                (pool.0 + 2 * PAGE) as *mut _,
                2 * PAGE,
                rustix::mm::MprotectFlags::READ | rustix::mm::MprotectFlags::WRITE,
            )
        }
        .expect("mprotect");
        let address = pool.0 + 2 * PAGE;
        // SAFETY: the page is readable and served below.
        let reader = std::thread::spawn(move || unsafe { (address as *const u8).read_volatile() });
        let mut messages = [Message::default(); 4];
        let found = loop {
            let count = uffd.read(&mut messages).expect("read");
            if count > 0 {
                break messages[0].page_address();
            }
            std::thread::yield_now();
        };
        assert_eq!(found, Some(address));
        let source = [9_u8; PAGE];
        // SAFETY: the page is missing; `source` is readable.
        let copied = unsafe { uffd.copy(address, source.as_ptr() as usize, PAGE) };
        assert_eq!(copied.error, None);
        assert_eq!(reader.join().expect("reader"), 9);
    }
}
