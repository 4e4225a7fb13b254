//! [`JavaFile`] reads the file of the agent in a Java virtual machine ([`isotherm_abi::java`]): sites, objects, classes and compiled code.
//! [`parse_java_name`] finds the process by the file's name.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use isotherm_abi::java::{
    CLASS_SLOTS, FILE_PREFIX, HEADER_BYTES, JavaClassRecord, JavaHeader, JavaMethodRecord,
    JavaObjectRecord, JavaSiteRecord, JavaTable, MAGIC, METHOD_SLOTS, OBJECT_SLOTS, SITE_SLOTS,
    TEXT_AT_MOST, TEXT_BYTES, VERSION,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::SessionError;
use crate::file::{open_private, read_header};

/// The process of the file of an agent, by the file's name.
#[must_use]
pub fn parse_java_name(name: &str) -> Option<u32> {
    let pid = name.strip_prefix(FILE_PREFIX)?;
    let is_number = pid.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| pid.parse().ok()).flatten()
}

/// An open file.
#[derive(Debug)]
pub struct JavaFile {
    file: File,
    /// The header at the time of the open, when its tables were checked.
    header: JavaHeader,
}

impl JavaFile {
    /// Opens and checks a file.
    ///
    /// # Errors
    /// It cannot be opened, is not a plain file that only this user can write, or its header is wrong or still empty.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let file = open_private(OpenOptions::new().read(true), path)?;
        let header: JavaHeader = read_header(&file)?;
        let end = file.metadata()?.len();
        match (header.magic, header.version) {
            (0, _) => return Err(SessionError::NotYet),
            (MAGIC, VERSION) => {}
            (MAGIC, version) => {
                let text = format!("version {version} of the Java agent, not {VERSION}");
                return Err(SessionError::Wrong(text));
            }
            _ => return Err(SessionError::Wrong("no file of the Java agent".to_owned())),
        }
        let fits = |table: JavaTable, record: usize, most| {
            let bytes = table.slots.checked_mul(record as u64);
            let ends = bytes.and_then(|bytes| bytes.checked_add(table.offset));
            let is_within = ends.is_some_and(|ends| ends <= end);
            is_within && table.slots <= most && table.offset >= HEADER_BYTES as u64
        };
        let all_fit = fits(header.sites, size_of::<JavaSiteRecord>(), SITE_SLOTS)
            && fits(header.objects, size_of::<JavaObjectRecord>(), OBJECT_SLOTS)
            && fits(header.classes, size_of::<JavaClassRecord>(), CLASS_SLOTS)
            && fits(header.methods, size_of::<JavaMethodRecord>(), METHOD_SLOTS)
            && fits(header.text, 1, TEXT_BYTES);
        if !all_fit {
            return Err(SessionError::Wrong(
                "a table of the Java agent does not fit into its file".to_owned(),
            ));
        }
        Ok(Self { file, header })
    }

    /// The process that wrote the file.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.header.pid
    }

    /// The present numbers. The tables are where they were at the open, and use no more records than they have room for.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn state(&self) -> Result<JavaHeader, SessionError> {
        let now: JavaHeader = read_header(&self.file)?;
        let checked = |now: JavaTable, table: JavaTable| JavaTable {
            used: now.used.min(table.slots),
            ..table
        };
        Ok(JavaHeader {
            sites: checked(now.sites, self.header.sites),
            objects: checked(now.objects, self.header.objects),
            classes: checked(now.classes, self.header.classes),
            methods: checked(now.methods, self.header.methods),
            text: checked(now.text, self.header.text),
            ..now
        })
    }

    /// The sites that the state counts, by number.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn sites(&self, state: &JavaHeader) -> Result<Vec<JavaSiteRecord>, SessionError> {
        self.records(self.header.sites, 0..state.sites.used)
    }

    /// The objects that live, in no order. Their addresses are right if the collections are the same even number before and after.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn objects(&self, state: &JavaHeader) -> Result<Vec<JavaObjectRecord>, SessionError> {
        let range = 0..state.objects.used;
        let mut objects: Vec<JavaObjectRecord> = self.records(self.header.objects, range)?;
        objects.retain(|object| object.address != 0);
        Ok(objects)
    }

    /// The records of classes from number `from` on: the word of a class in the headers of its objects, and its number.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn classes(
        &self,
        state: &JavaHeader,
        from: u64,
    ) -> Result<Vec<JavaClassRecord>, SessionError> {
        self.records(self.header.classes, from..state.classes.used)
    }

    /// The pieces of compiled code from number `from` on.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn code(
        &self,
        state: &JavaHeader,
        from: u64,
    ) -> Result<Vec<JavaMethodRecord>, SessionError> {
        self.records(self.header.methods, from..state.methods.used)
    }

    /// The text of a site. Control characters other than those that separate its parts are replaced: names are printed on terminals.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn text(&self, site: &JavaSiteRecord) -> Result<String, SessionError> {
        let area = self.header.text;
        let place = u64::from(site.text).min(area.slots);
        let room = (area.slots - place).min(u64::from(TEXT_AT_MOST));
        let mut bytes = vec![0; u64::from(site.text_bytes).min(room) as usize];
        self.file.read_exact_at(&mut bytes, area.offset + place)?;
        let unprintable = |it: char| it.is_control() && it != '\n' && it != '\t';
        Ok(String::from_utf8_lossy(&bytes).replace(unprintable, "\u{fffd}"))
    }

    /// Records of a table by number; no more than it has room for.
    fn records<T: Copy + FromBytes + IntoBytes>(
        &self,
        table: JavaTable,
        numbers: Range<u64>,
    ) -> Result<Vec<T>, SessionError> {
        let end = numbers.end.min(table.slots);
        let start = numbers.start.min(end);
        let mut records = vec![T::new_zeroed(); (end - start) as usize];
        let place = table.offset + start * size_of::<T>() as u64;
        self.file.read_exact_at(records.as_mut_bytes(), place)?;
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, PermissionsExt};
    use std::path::{Path, PathBuf};

    use super::{JavaFile, parse_java_name};
    use crate::SessionError;
    use isotherm_abi::java::{HEADER_BYTES, MAGIC, VERSION};
    use proptest::prelude::*;

    /// The first words of a header with five tables of one page each, and these many records in use.
    fn words(used: u64) -> Vec<u64> {
        let mut words = vec![MAGIC, u64::from(VERSION) | 77 << 32, 512, 4, 0x1000, 0x9000];
        for table in 1..=5 {
            words.extend([table * HEADER_BYTES as u64, 4, used]);
        }
        words.extend([6, 500, 30, 9, 11, 2, 3]);
        words
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn file(directory: &Path, header: &[u8], length: u64) -> PathBuf {
        let path = directory.join("java.77");
        let file = std::fs::File::create(&path).expect("creates");
        file.write_all_at(header, 0).expect("writes");
        file.set_len(length).expect("sizes");
        file.set_permissions(std::fs::Permissions::from_mode(0o600))
            .expect("permits");
        path
    }

    const LENGTH: u64 = 6 * HEADER_BYTES as u64;

    #[test]
    fn a_file_is_named_by_its_process() {
        assert_eq!(parse_java_name("java.77"), Some(77));
        for name in ["java.", "java.7x", "77.0", "java", "java.+7"] {
            assert_eq!(parse_java_name(name), None, "{name}");
        }
    }

    #[test]
    fn records_in_use_are_read_and_objects_without_an_address_are_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = file(directory.path(), &bytes(&words(2)), LENGTH);
        let writer = std::fs::OpenOptions::new().write(true).open(&path);
        let write = |words: &[u64], table: u64| {
            let writer = writer.as_ref().expect("opens");
            let place = table * HEADER_BYTES as u64;
            writer.write_all_at(&bytes(words), place).expect("writes");
        };
        write(&[3 << 32, 5, 100, 2400, 48, 96, 7, 8], 1);
        write(&[0, 16, 0, 0x2000, 24, 1 | 5 << 32], 2);
        write(&[0xabc, 5, 0xdef, 6], 3);
        write(&[0x7000, 64, 0, 0x8000, 0, 0], 4);
        write(&[u64::from_ne_bytes(*b"A\tb\x1b\n\0\0\0")], 5);
        let opened = JavaFile::open(&path).expect("opens");
        let state = opened.state().expect("reads");
        assert_eq!(opened.pid(), 77);
        assert_eq!((state.heap_start, state.heap_end), (0x1000, 0x9000));
        assert_eq!(
            (state.collections, state.sampled, state.compiled_methods),
            (6, 11, 3)
        );
        let sites = opened.sites(&state).expect("reads");
        assert_eq!((sites.len(), sites[0].class, sites[0].bytes), (2, 5, 2400));
        assert_eq!((sites[0].live_bytes, sites[0].accesses), (48, 8));
        assert_eq!(opened.text(&sites[0]).expect("reads"), "A\tb");
        let objects = opened.objects(&state).expect("reads");
        assert_eq!(objects.len(), 1);
        assert_eq!((objects[0].site, objects[0].class), (1, 5));
        let classes = opened.classes(&state, 1).expect("reads");
        assert_eq!(classes.len(), 1);
        assert_eq!((classes[0].word, classes[0].class), (0xdef, 6));
        assert_eq!(opened.code(&state, 0).expect("reads").len(), 2);
    }

    #[test]
    fn a_table_outside_the_file_another_version_and_a_file_of_others_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let refused = |words: &[u64], length, mode| {
            let path = file(directory.path(), &bytes(words), length);
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("permits");
            matches!(JavaFile::open(&path), Err(SessionError::Wrong(_)))
        };
        assert!(!refused(&words(2), LENGTH, 0o600));
        assert!(refused(&words(2), LENGTH, 0o622));
        assert!(refused(&words(2), LENGTH - HEADER_BYTES as u64, 0o600));
        for (place, word) in [(1, 2), (6, 0), (7, u64::MAX), (18, u64::MAX), (0, 5)] {
            let mut words = words(2);
            words[place] = word;
            assert!(refused(&words, LENGTH, 0o600), "word {place}");
        }
        let path = file(directory.path(), &[0; 8], 8);
        assert!(matches!(JavaFile::open(&path), Err(SessionError::NotYet)));
    }

    proptest! {
        #[test]
        fn no_numbers_in_a_file_are_followed_out_of_it(
            changes in prop::collection::vec((2_usize..400, any::<u64>()), 0..12),
            used in any::<u64>()
        ) {
            let directory = tempfile::tempdir().expect("a directory");
            let path = file(directory.path(), &bytes(&words(used)), LENGTH);
            let writer = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
            for (place, word) in changes {
                let place = if place < 28 { place * 8 } else { place * 56 };
                writer.write_all_at(&word.to_ne_bytes(), place as u64 % (LENGTH - 8)).expect("writes");
            }
            let Ok(opened) = JavaFile::open(&path) else { return Ok(()) };
            let state = opened.state().expect("reads");
            for site in opened.sites(&state).expect("reads") {
                let text = opened.text(&site).expect("reads");
                prop_assert!(text.len() <= 3 * 4096);
            }
            opened.objects(&state).expect("reads");
            opened.classes(&state, used).expect("reads");
            opened.code(&state, used).expect("reads");
        }
    }
}
