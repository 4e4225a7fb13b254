//! [`map`] maps a file of known size that processes share, such as that of the capacity, from the session directory, for reading and
//! writing.

use core::ffi::CStr;
use std::os::fd::AsRawFd;

use isotherm_abi::session::OffReason;
use isotherm_sys::descriptor::Descriptor;
use isotherm_sys::memory;
use isotherm_sys::private::{self, PrivateError};
use rustix::fs::{self, OFlags};
use rustix::io::Errno;

use crate::path::Path;

/// Maps the file of this name and size for reading and writing, for good, and returns its address; `None` where there is no such
/// file, or no directory.
///
/// # Errors
/// [`OffReason::NoSession`] where the file cannot be used, [`OffReason::NoAddressSpace`].
pub(crate) fn map(
    directory: Option<&CStr>,
    name: &str,
    bytes: usize,
) -> Result<Option<usize>, OffReason> {
    let Some(directory) = directory else {
        return Ok(None);
    };
    let file = match open(directory, name) {
        Ok(file) => file,
        Err(PrivateError::Unopened(Errno::NOENT)) => return Ok(None),
        Err(_) => return Err(OffReason::NoSession),
    };
    // A store beyond the end would kill the program.
    let size = fs::fstat(&file).map_err(|_| OffReason::NoSession)?.st_size;
    if size != bytes as i64 {
        return Err(OffReason::NoSession);
    }
    // SAFETY: without MAP_FIXED the kernel picks a range that no mapping uses.
    unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        memory::map(0, bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
    }
    .map(Some)
    .map_err(|_| OffReason::NoAddressSpace)
}

fn open(directory: &CStr, name: &str) -> Result<Descriptor, PrivateError> {
    let directory = private::open_directory(directory)?;
    let mut path = Path::<32>::new();
    let too_long = PrivateError::Unopened(Errno::NAMETOOLONG);
    path.push(name.as_bytes()).ok_or(too_long)?;
    private::open_file(directory, path.as_c_str().ok_or(too_long)?, OFlags::RDWR)
}
