//! [`Archive`] builds the initial file system of a guest in the form that the kernel unpacks: a cpio archive of variant "newc"
//! (`Documentation/driver-api/early-userspace/buffer-format.rst`).
//!
//! Every entry is a header of 110 bytes (the magic number and 13 numbers of 8 hexadecimal digits),
//! the name with a zero byte, padding to 4 bytes, the content, padding to 4 bytes.

use std::collections::BTreeSet;
use std::path::Path;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// An archive that grows entry by entry.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    /// Names of existing entries; the kernel needs directories before their content.
    names: BTreeSet<String>,
}

impl Archive {
    /// Adds a directory and those above it; an existing one stays unchanged.
    pub fn directory(&mut self, path: &str) {
        let parents = Path::new(path).ancestors().collect::<Vec<_>>();
        for parent in parents.into_iter().rev().filter_map(Path::to_str) {
            let name = parent.trim_start_matches('/');
            if !name.is_empty() && self.names.insert(name.to_owned()) {
                self.entry(name, DIRECTORY, &[]);
            }
        }
    }

    /// Adds an executable file. An existing one of the same name stays.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.placed(path, PROGRAM, content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.placed(path, LINK, target.as_bytes());
    }

    /// The archive with its last entry, which marks the end.
    #[must_use]
    pub fn finished(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn placed(&mut self, path: &str, mode: u32, content: &[u8]) {
        if let Some(parent) = Path::new(path).parent().and_then(Path::to_str) {
            self.directory(parent);
        }
        let name = path.trim_start_matches('/');
        if self.names.insert(name.to_owned()) {
            self.entry(name, mode, content);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        // The format has 32 bits for a size; a longer file does not fit a guest's memory anyway.
        let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let content = &content[..size as usize];
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        // inode (0: none are linked), mode, owner, group, links, time, size, two device numbers of
        // the file system and two of a device node, size of the name, checksum.
        let numbers = [0, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for number in numbers {
            self.bytes
                .extend_from_slice(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, modes and contents of an archive, read back by the format's own rules.
    fn entries(bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            assert_eq!(&bytes[at..at + 6], b"070701", "at byte {at}");
            let number = |index: usize| {
                let digits = &bytes[at + 6 + index * 8..][..8];
                u32::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap()
            };
            let (mode, size, name_size) = (number(1), number(6) as usize, number(11) as usize);
            let name = &bytes[at + 110..][..name_size - 1];
            let content = (at + 110 + name_size).next_multiple_of(4);
            let held = bytes[content..content + size].to_vec();
            entries.push((String::from_utf8(name.to_vec()).unwrap(), mode, held));
            at = (content + size).next_multiple_of(4);
        }
        entries
    }

    #[test]
    fn a_file_comes_after_its_directories_and_keeps_its_content() {
        let mut archive = Archive::default();
        archive.file("/usr/bin/tool", b"odd");
        archive.link("/bin", "usr/bin");
        let entries = entries(&archive.finished());
        let names: Vec<&str> = entries.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(
            names,
            ["usr", "usr/bin", "usr/bin/tool", "bin", "TRAILER!!!"]
        );
        assert_eq!(
            entries[2],
            ("usr/bin/tool".to_owned(), PROGRAM, b"odd".to_vec())
        );
        assert_eq!(entries[3], ("bin".to_owned(), LINK, b"usr/bin".to_vec()));
    }

    #[test]
    fn a_name_is_there_once_and_the_first_stays() {
        let mut archive = Archive::default();
        archive.file("/lib/libc.so.6", b"first");
        archive.file("/lib/libc.so.6", b"second");
        archive.directory("/lib");
        let entries = entries(&archive.finished());
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[1].2, b"first");
    }
}
