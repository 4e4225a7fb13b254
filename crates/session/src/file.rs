//! [`SessionFile`] is a session file that was opened and checked, not mapped: it reads the counts of the header
//! ([`SessionFile::progress`]), and the modules of the tables read and write records through it, by offset. It keeps what they have read
//! already (positions in two rings, access counts, numbers of sites). [`open_private`] and [`read_header`] also serve the file of the Java
//! agent.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use isotherm_model::site::SiteId;
use isotherm_sys::private::check_file;
use rustix::fs::OFlags;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::error::SessionError;
use crate::header::{Header, Progress};

/// The offset of a field of the header in a session file, such as `at!(moving.state)`.
macro_rules! at {
    ($($field:tt)+) => {
        std::mem::offset_of!(isotherm_abi::session::SessionHeader, $($field)+) as u64
    };
}
pub(crate) use at;

/// Counts by slot at the last read; slots without counts are absent.
type CountsRead = BTreeMap<u64, Vec<u64>>;

/// An open session file.
#[derive(Debug)]
pub struct SessionFile {
    pub(crate) file: File,
    path: PathBuf,
    pub(crate) header: Header,
    pub(crate) touches_read: u64,
    pub(crate) objects_read: u64,
    pub(crate) counts_read: CountsRead,
    /// Number of each site whose name was read for a request.
    pub(crate) site_numbers: BTreeMap<SiteId, u64>,
    pub(crate) site_numbers_read: u64,
}

impl SessionFile {
    /// Opens and checks a file.
    ///
    /// # Errors
    /// It cannot be opened, is not a plain file that only this user can write, or its header is wrong or
    /// still empty.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        // A file that may only be read takes no requests.
        let file = open_private(OpenOptions::new().read(true).write(true), path)
            .or_else(|_| open_private(OpenOptions::new().read(true), path))?;
        let header = Header::check(&read_header(&file)?, file.metadata()?.len())?;
        Ok(Self {
            file,
            path: path.to_owned(),
            header,
            touches_read: 0,
            objects_read: 0,
            counts_read: CountsRead::default(),
            site_numbers: BTreeMap::new(),
            site_numbers_read: 0,
        })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The part of its header that never changes.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The current counts and state of the runtime.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn progress(&self) -> Result<Progress, SessionError> {
        let header = read_header(&self.file)?;
        // The records are read after the counts that announce them.
        fence(Ordering::Acquire);
        Ok(self.header.progress(header))
    }

    /// The number or the record at an offset of the file.
    pub(crate) fn read<T: FromBytes + IntoBytes>(&self, offset: u64) -> Result<T, SessionError> {
        let mut value = T::new_zeroed();
        self.file.read_exact_at(value.as_mut_bytes(), offset)?;
        Ok(value)
    }

    /// Writes a number or a record at an offset of the file.
    pub(crate) fn write<T>(&self, offset: u64, value: &T) -> Result<(), SessionError>
    where
        T: Immutable + IntoBytes + ?Sized,
    {
        Ok(self.file.write_all_at(value.as_bytes(), offset)?)
    }
}

/// Opens a plain file that only this user can write.
pub(crate) fn open_private(access: &mut OpenOptions, path: &Path) -> Result<File, SessionError> {
    // The open does not follow a planted link and does not wait for the other end of a planted pipe.
    let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = access.custom_flags(careful.bits() as i32).open(path)?;
    check_file(&file).map_err(|error| SessionError::Wrong(error.to_string()))?;
    Ok(file)
}

/// The first record of a file.
pub(crate) fn read_header<T: FromBytes + IntoBytes>(file: &File) -> Result<T, SessionError> {
    let mut header = T::new_zeroed();
    match file.read_exact_at(header.as_mut_bytes(), 0) {
        Ok(()) => Ok(header),
        // Truncated, or just created without its length.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(SessionError::NotYet),
        Err(error) => Err(error.into()),
    }
}
