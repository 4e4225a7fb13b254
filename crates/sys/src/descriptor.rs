//! A [`Descriptor`] is an open file that is closed by the plain system call, not by the C library's `close`, which is a cancellation point.
//!
//! The runtime opens files within the program's `malloc`. The C library's `close` is a cancellation point
//! (`pthreads(7)`): it ends a thread that another one has cancelled, and the exception that it throws cannot leave
//! `malloc`, so the program dies. The system call alone is none.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// A descriptor that is closed by the system call when this is dropped.
#[derive(Debug)]
pub struct Descriptor(RawFd);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: this owns the descriptor, and no reference to it outlives this.
        unsafe { rustix::io::close(self.0) };
    }
}

impl From<OwnedFd> for Descriptor {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor.into_raw_fd())
    }
}

impl From<Descriptor> for OwnedFd {
    fn from(descriptor: Descriptor) -> Self {
        let number = std::mem::ManuallyDrop::new(descriptor).0;
        // SAFETY: the descriptor is open, and its owner has just given it up.
        unsafe { Self::from_raw_fd(number) }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as this lives.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Descriptor;
    use rustix::fs::{Mode, OFlags, fstat, open};
    use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

    /// Whether the number is open. Tests run in threads, so the number may be another file's by now.
    fn names(number: i32, file: &rustix::fs::Stat) -> bool {
        // SAFETY: the number is used by this call only, which refuses one that is not open.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        fstat(borrowed).is_ok_and(|now| (now.st_dev, now.st_ino) == (file.st_dev, file.st_ino))
    }

    #[test]
    fn the_file_is_closed_once_when_its_last_owner_goes() {
        let path = std::env::temp_dir().join(format!("isotherm-descriptor-{}", std::process::id()));
        std::fs::write(&path, "").unwrap();
        let descriptor = Descriptor::from(open(&path, OFlags::RDONLY, Mode::empty()).unwrap());
        let file = fstat(&descriptor).unwrap();
        let number = descriptor.as_raw_fd();
        let owned = OwnedFd::from(descriptor);
        assert!(names(number, &file));
        drop(Descriptor::from(owned));
        assert!(!names(number, &file));
        std::fs::remove_file(&path).unwrap();
    }
}
