//! Describes the file `java.<pid>` ([`JavaHeader`]) in the session directory, by which the agent inside a Java virtual machine reports to
//! the observer (the Isotherm process outside): allocation sites with their sums, the sampled objects of the heap, their classes, and the
//! compiled methods. Where the agent counts every object and access, it reports sums by site and no objects. `java/agent/layout.h` is
//! the same in C++; both sides assert the offsets.
//!
//! ```text
//! +--------------------+ 0
//! | JavaHeader         |  4096 bytes: numbers of the tables, the heap's addresses, collections so far
//! +--------------------+ sites.offset
//! | JavaSiteRecord ... |  allocation sites with their sums
//! +--------------------+ objects.offset
//! | JavaObjectRecord.. |  sampled objects that are not collected, each at its present address
//! +--------------------+ classes.offset
//! | JavaClassRecord .. |  the word in an object's header that stands for its class
//! +--------------------+ methods.offset
//! | JavaMethodRecord.. |  compiled code
//! +--------------------+ text.offset
//! | UTF-8              |  names; records hold their places
//! +--------------------+
//! ```
//!
//! A record is complete before `used` of its table counts it, and only the sums of a site, the address of an object and the
//! length of code change afterwards. Addresses of objects hold from the end of a collection to the begin of the next:
//! [`JavaHeader::collections`] is odd while one runs. A reader reads it before and after the objects, and uses nothing where it is
//! odd or has changed.

use core::mem::offset_of;

use zerocopy::{FromBytes, IntoBytes};

/// First bytes of a file.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"isojava\0");
/// Version of these layouts.
pub const VERSION: u32 = 1;
/// A file's name before the process id.
pub const FILE_PREFIX: &str = "java.";
/// Bytes of the header, which the tables follow.
pub const HEADER_BYTES: usize = 4096;
/// Most records of each table: sixteen times the sites of the largest program of the Cross-Layer paper's Table 3, sampled objects of
/// 32 GiB of heap at the usual interval, and classes and methods of the largest application servers.
pub const SITE_SLOTS: u64 = 1 << 16;
/// As [`SITE_SLOTS`].
pub const OBJECT_SLOTS: u64 = 1 << 16;
/// As [`SITE_SLOTS`].
pub const CLASS_SLOTS: u64 = 1 << 16;
/// As [`SITE_SLOTS`].
pub const METHOD_SLOTS: u64 = 1 << 17;
/// Bytes of all names.
pub const TEXT_BYTES: u64 = 32 << 20;
/// Most bytes of one text; longer ones are cut.
pub const TEXT_AT_MOST: u32 = 4096;
/// Name of the agent's file, beside that of the runtime.
pub const AGENT: &str = "libisotherm-java.so";

/// Where a table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes)]
#[repr(C)]
pub struct JavaTable {
    /// Its first byte in the file.
    pub offset: u64,
    /// Records that it has room for; bytes, of the text.
    pub slots: u64,
    /// Records in use, from the first on.
    pub used: u64,
}

/// The header. Bytes up to [`HEADER_BYTES`] are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes)]
#[repr(C)]
pub struct JavaHeader {
    /// [`MAGIC`], written last.
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// The process.
    pub pid: u32,
    /// Bytes that are allocated from one sampled object to the next, on average.
    pub interval_bytes: u64,
    /// Bytes of the word behind the first eight of an object that stands for its class: 4 or 8.
    pub class_word_bytes: u32,
    /// 1 where each object is counted in the interpreter, 0 where objects are sampled.
    pub counts_all: u32,
    /// First address of the heap; 0 where it is not known.
    pub heap_start: u64,
    /// The address behind its last.
    pub heap_end: u64,
    /// [`JavaSiteRecord`]s.
    pub sites: JavaTable,
    /// [`JavaObjectRecord`]s.
    pub objects: JavaTable,
    /// [`JavaClassRecord`]s.
    pub classes: JavaTable,
    /// [`JavaMethodRecord`]s.
    pub methods: JavaTable,
    /// Names.
    pub text: JavaTable,
    /// Twice the collections so far, plus one while one runs.
    pub collections: u64,
    /// When the last collection ended, `CLOCK_MONOTONIC`.
    pub collection_ended_ns: u64,
    /// Time of all collections that stopped the program.
    pub collecting_ns: u64,
    /// Counts the changes of the objects.
    pub object_changes: u64,
    /// Objects sampled.
    pub sampled: u64,
    /// Sampled objects for which a table had no room.
    pub dropped: u64,
    /// Methods with compiled code now.
    pub compiled_methods: u64,
}

/// An allocation site: a place in a method, its callers, and the class that it allocates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes)]
#[repr(C)]
pub struct JavaSiteRecord {
    /// Its text: the class in the first line, then one line a frame, innermost first, each with the fields method (`Class.name`),
    /// descriptor, bytecode index, file and line, separated by tabs. The bytecode index is -1 in native code; file and line are
    /// empty where they are not known.
    pub text: u32,
    /// Length of the text.
    pub text_bytes: u32,
    /// The class: a number that objects and classes have too.
    pub class: u32,
    /// Zero.
    pub reserved: u32,
    /// Objects allocated, estimated from the samples.
    pub allocations: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Bytes not collected yet.
    pub live_bytes: u64,
    /// Most live bytes at one time.
    pub peak_bytes: u64,
    /// Objects sampled.
    pub samples: u64,
    /// Accesses counted, where all are counted.
    pub accesses: u64,
}

/// A sampled object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes)]
#[repr(C)]
pub struct JavaObjectRecord {
    /// Its address; 0 in a slot without an object.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Number of its site.
    pub site: u32,
    /// Its class.
    pub class: u32,
}

/// A class that a sampled object has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes)]
#[repr(C)]
pub struct JavaClassRecord {
    /// The word in the header of its objects.
    pub word: u64,
    /// The class.
    pub class: u32,
    /// Zero.
    pub reserved: u32,
}

/// Compiled code of a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes)]
#[repr(C)]
pub struct JavaMethodRecord {
    /// First address.
    pub start: u64,
    /// Length; 0 once it is unloaded.
    pub bytes: u64,
    /// Its name: `Class.name`.
    pub text: u32,
    /// Length of the name.
    pub text_bytes: u32,
}

const _: () = {
    assert!(size_of::<JavaHeader>() == 224 && size_of::<JavaHeader>() <= HEADER_BYTES);
    assert!(offset_of!(JavaHeader, interval_bytes) == 16);
    assert!(offset_of!(JavaHeader, heap_start) == 32);
    assert!(offset_of!(JavaHeader, sites) == 48);
    assert!(offset_of!(JavaHeader, text) == 144);
    assert!(offset_of!(JavaHeader, collections) == 168);
    assert!(offset_of!(JavaHeader, object_changes) == 192);
    assert!(offset_of!(JavaHeader, compiled_methods) == 216);
    assert!(size_of::<JavaSiteRecord>() == 64 && offset_of!(JavaSiteRecord, allocations) == 16);
    assert!(offset_of!(JavaSiteRecord, accesses) == 56);
    assert!(size_of::<JavaObjectRecord>() == 24 && offset_of!(JavaObjectRecord, site) == 16);
    assert!(size_of::<JavaClassRecord>() == 16 && offset_of!(JavaClassRecord, class) == 8);
    assert!(size_of::<JavaMethodRecord>() == 24 && offset_of!(JavaMethodRecord, text) == 16);
};
