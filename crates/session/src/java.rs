//! The file of the agent in a Java virtual machine ([`isotherm_abi::java`]).

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use isotherm_abi::java::{
    CLASS_SLOTS, FILE_PREFIX, HEADER_BYTES, JavaClassRecord, JavaHeader, JavaMethodRecord,
    JavaObjectRecord, JavaSiteRecord, JavaTable, MAGIC, METHOD_SLOTS, OBJECT_SLOTS, SITE_SLOTS,
    TEXT_AT_MOST, TEXT_BYTES, VERSION,
};
use isotherm_sys::private::check_file;
use rustix::fs::OFlags;
use zerocopy::FromBytes;

use crate::error::SessionError;
use crate::file::read_header;

/// The process of the file of an agent, by the file's name.
#[must_use]
pub fn parse_java_name(name: &str) -> Option<u32> {
    let pid = name.strip_prefix(FILE_PREFIX)?;
    let is_number = pid.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| pid.parse().ok()).flatten()
}

/// What changes in a file besides its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JavaState {
    /// Addresses of the heap, the end excluded; two zeros where they are not known.
    pub heap: (u64, u64),
    /// Bytes of the word in an object's header that stands for its class; 0 where they are not known.
    pub class_word_bytes: u32,
    /// Twice the collections so far, plus one while one runs.
    pub collections: u64,
    /// When the last one ended, `CLOCK_MONOTONIC`.
    pub collection_ended_ns: u64,
    /// Time of all of them.
    pub collecting_ns: u64,
    /// Changes of the objects so far.
    pub object_changes: u64,
    /// Objects sampled.
    pub sampled: u64,
    /// Those of them that cannot be followed for lack of room.
    pub dropped: u64,
    /// Methods with compiled code now.
    pub compiled_methods: u64,
    /// True where each object and access is counted.
    pub counts_all: bool,
    /// Pieces of compiled code so far.
    pub methods: u64,
    sites: u64,
    objects: u64,
    classes: u64,
}

/// The place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaText {
    place: u32,
    bytes: u32,
}

/// An allocation site and its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaSiteSums {
    /// Class and frames, as [`JavaSiteRecord::text`] says.
    pub text: JavaText,
    /// The class that it allocates.
    pub class: u32,
    /// Objects allocated.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes not collected yet.
    pub live_bytes: u64,
    /// Most of them at one time.
    pub peak_bytes: u64,
    /// Accesses, where all are counted.
    pub accesses: u64,
}

/// A sampled object that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaObject {
    /// Its address.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
    /// Number of its site.
    pub site: u32,
    /// Its class.
    pub class: u32,
}

/// Compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaCode {
    /// First address.
    pub start: u64,
    /// Length; 0 once it is unloaded.
    pub bytes: u64,
}

/// An open file.
#[derive(Debug)]
pub struct JavaFile {
    file: File,
    pid: u32,
    sites: JavaTable,
    objects: JavaTable,
    classes: JavaTable,
    methods: JavaTable,
    text: JavaTable,
}

impl JavaFile {
    /// Opens and checks a file.
    ///
    /// # Errors
    /// It cannot be opened, is not a plain file that only this user can write, or its header is wrong or still empty.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(careful.bits() as i32)
            .open(path)?;
        check_file(&file).map_err(|error| SessionError::Wrong(error.to_string()))?;
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
        let table = |table: JavaTable, record: usize, most| {
            let bytes = table.slots.checked_mul(record as u64);
            let ends = bytes.and_then(|bytes| bytes.checked_add(table.offset));
            let is_within = ends.is_some_and(|ends| ends <= end);
            match is_within && table.slots <= most && table.offset >= HEADER_BYTES as u64 {
                true => Ok(table),
                false => Err(SessionError::Wrong(
                    "a table of the Java agent does not fit into its file".to_owned(),
                )),
            }
        };
        Ok(Self {
            pid: header.pid,
            sites: table(header.sites, size_of::<JavaSiteRecord>(), SITE_SLOTS)?,
            objects: table(header.objects, size_of::<JavaObjectRecord>(), OBJECT_SLOTS)?,
            classes: table(header.classes, size_of::<JavaClassRecord>(), CLASS_SLOTS)?,
            methods: table(header.methods, size_of::<JavaMethodRecord>(), METHOD_SLOTS)?,
            text: table(header.text, 1, TEXT_BYTES)?,
            file,
        })
    }

    /// The process that wrote it.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The present numbers.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn state(&self) -> Result<JavaState, SessionError> {
        let header: JavaHeader = read_header(&self.file)?;
        let used = |now: JavaTable, table: &JavaTable| now.used.min(table.slots);
        Ok(JavaState {
            heap: (header.heap_start, header.heap_end),
            class_word_bytes: header.class_word_bytes,
            collections: header.collections,
            collection_ended_ns: header.collection_ended_ns,
            collecting_ns: header.collecting_ns,
            object_changes: header.object_changes,
            sampled: header.sampled,
            dropped: header.dropped,
            compiled_methods: header.compiled_methods,
            counts_all: header.counts_all == 1,
            sites: used(header.sites, &self.sites),
            objects: used(header.objects, &self.objects),
            classes: used(header.classes, &self.classes),
            methods: used(header.methods, &self.methods),
        })
    }

    /// The sites that the state counts, by number.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn sites(&self, state: &JavaState) -> Result<Vec<JavaSiteSums>, SessionError> {
        let sums = |record: JavaSiteRecord| JavaSiteSums {
            text: JavaText {
                place: record.text,
                bytes: record.text_bytes,
            },
            class: record.class,
            allocations: record.allocations,
            bytes: record.bytes,
            live_bytes: record.live_bytes,
            peak_bytes: record.peak_bytes,
            accesses: record.accesses,
        };
        self.records(&self.sites, 0..state.sites, sums)
    }

    /// The objects that live, in no order. Their addresses are right if the collections are the same even number before and after.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn objects(&self, state: &JavaState) -> Result<Vec<JavaObject>, SessionError> {
        let object = |record: JavaObjectRecord| JavaObject {
            address: record.address,
            bytes: record.bytes,
            site: record.site,
            class: record.class,
        };
        let mut objects = self.records(&self.objects, 0..state.objects, object)?;
        objects.retain(|object| object.address != 0);
        Ok(objects)
    }

    /// The words of classes from this one on, each with its class.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn classes(&self, state: &JavaState, from: u64) -> Result<Vec<(u64, u32)>, SessionError> {
        let class = |record: JavaClassRecord| (record.word, record.class);
        self.records(&self.classes, from..state.classes, class)
    }

    /// The compiled code from this piece on.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn code(&self, state: &JavaState, from: u64) -> Result<Vec<JavaCode>, SessionError> {
        let code = |record: JavaMethodRecord| JavaCode {
            start: record.start,
            bytes: record.bytes,
        };
        self.records(&self.methods, from..state.methods, code)
    }

    /// A text. Control characters other than those that separate its parts are replaced: names are printed on terminals.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn text(&self, text: JavaText) -> Result<String, SessionError> {
        let place = u64::from(text.place).min(self.text.slots);
        let room = (self.text.slots - place).min(u64::from(TEXT_AT_MOST));
        let mut bytes = vec![0; u64::from(text.bytes).min(room) as usize];
        self.file
            .read_exact_at(&mut bytes, self.text.offset + place)?;
        let unprintable = |it: char| it.is_control() && it != '\n' && it != '\t';
        Ok(String::from_utf8_lossy(&bytes).replace(unprintable, "\u{fffd}"))
    }

    /// Records of a table by number; no more than it has room for.
    fn records<T: FromBytes, R>(
        &self,
        table: &JavaTable,
        numbers: std::ops::Range<u64>,
        read: impl Fn(T) -> R,
    ) -> Result<Vec<R>, SessionError> {
        let bytes = size_of::<T>();
        let end = numbers.end.min(table.slots);
        let start = numbers.start.min(end);
        let mut records = vec![0; (end - start) as usize * bytes];
        let place = table.offset + start * bytes as u64;
        self.file.read_exact_at(&mut records, place)?;
        let records = records.chunks_exact(bytes).flat_map(T::read_from_bytes);
        Ok(records.map(read).collect())
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
        assert_eq!((opened.pid(), state.heap), (77, (0x1000, 0x9000)));
        assert_eq!(
            (state.collections, state.sampled, state.compiled_methods),
            (6, 11, 3)
        );
        let sites = opened.sites(&state).expect("reads");
        assert_eq!((sites.len(), sites[0].class, sites[0].bytes), (2, 5, 2400));
        assert_eq!((sites[0].live_bytes, sites[0].accesses), (48, 8));
        assert_eq!(opened.text(sites[0].text).expect("reads"), "A\tb");
        let objects = opened.objects(&state).expect("reads");
        assert_eq!(objects.len(), 1);
        assert_eq!((objects[0].site, objects[0].class), (1, 5));
        let classes = opened.classes(&state, 1).expect("reads");
        assert_eq!(classes, [(0xdef, 6)]);
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
                let text = opened.text(site.text).expect("reads");
                prop_assert!(text.len() <= 3 * 4096);
            }
            opened.objects(&state).expect("reads");
            opened.classes(&state, used).expect("reads");
            opened.code(&state, used).expect("reads");
        }
    }
}
