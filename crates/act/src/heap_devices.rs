//! [`HeapDevices`] sets over how many memory devices the hot objects of a Java heap are spread (`isotherm run --java --remap`): it writes
//! the number into the table that the virtual machine shares with the runtime ([`isotherm_abi::java_heap`]).
//!
//! ```text
//! number of devices --> table of the heap --> emulated machine: one of n hot regions is on the first of n
//! ```

use std::fs::OpenOptions;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use isotherm_abi::java_heap::{JavaHeapHeader, MAGIC, VERSION};
use zerocopy::{FromBytes as _, IntoBytes as _};

/// Sets the number of devices of one heap.
#[derive(Debug)]
pub struct HeapDevices {
    table: PathBuf,
    written: u32,
}

impl HeapDevices {
    /// The heap of this table, on one device. The virtual machine creates the file when it starts.
    #[must_use]
    pub fn new(table: &Path) -> Self {
        Self {
            table: table.to_owned(),
            written: 1,
        }
    }

    /// Number of devices in the table: one, or the number written last.
    #[must_use]
    pub const fn written(&self) -> u32 {
        self.written
    }

    /// Spreads the hot regions over this number of devices.
    ///
    /// # Errors
    /// There is no table, or it is not of this layout.
    pub fn set(&mut self, devices: u32) -> io::Result<()> {
        if devices == self.written {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = options.custom_flags(libc::O_NOFOLLOW).open(&self.table)?;
        let mut bytes = [0; size_of::<JavaHeapHeader>()];
        file.read_exact_at(&mut bytes, 0)?;
        let header = JavaHeapHeader::read_from_bytes(&bytes).ok();
        if !header.is_some_and(|header| header.magic == MAGIC && header.version == VERSION) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{}: is not the table of a heap", self.table.display()),
            ));
        }
        let offset = offset_of!(JavaHeapHeader, hot_devices) as u64;
        file.write_all_at(devices.as_bytes(), offset)?;
        self.written = devices;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::HeapDevices;
    use isotherm_abi::java_heap::{JavaHeapHeader, MAGIC, VERSION};
    use std::fs;
    use std::path::Path;
    use zerocopy::{FromBytes as _, IntoBytes as _};

    fn write(path: &Path, magic: u64) {
        let header = JavaHeapHeader {
            magic,
            version: VERSION,
            regions: 2,
            moved: 7,
            ..JavaHeapHeader::default()
        };
        fs::write(path, [header.as_bytes(), &[0x11, 0x22]].concat()).expect("writes");
    }

    #[test]
    fn the_number_of_devices_is_all_that_changes_in_the_table() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("heap-table");
        write(&path, MAGIC);
        let mut devices = HeapDevices::new(&path);
        devices.set(3).expect("there is a table");
        assert_eq!(devices.written(), 3);
        let bytes = fs::read(&path).expect("reads");
        let (header, regions) = JavaHeapHeader::read_from_prefix(&bytes).expect("a header");
        assert_eq!((header.hot_devices, header.moved), (3, 7));
        assert_eq!(regions, [0x11, 0x22]);
    }

    #[test]
    fn without_the_table_of_a_heap_nothing_is_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("heap-table");
        let mut devices = HeapDevices::new(&path);
        devices.set(1).expect("it is on one");
        devices
            .set(2)
            .expect_err("the virtual machine has not started");
        write(&path, 0);
        let refused = devices.set(2).expect_err("no magic number");
        assert!(refused.to_string().contains("heap-table"), "{refused}");
        fs::remove_file(&path).expect("removes");
        let target = directory.path().join("target");
        write(&target, MAGIC);
        std::os::unix::fs::symlink(&target, &path).expect("links");
        devices.set(2).expect_err("links are not followed");
        assert_eq!(devices.written(), 1);
    }
}
