//! [`Writer`] writes a profile, [`read()`] reads it, and [`add_sensitivity`] and [`add_isolation`] add tables of later runs. A profile
//! (`app.iso`) is a directory of Parquet tables, which DuckDB, Polars and pandas read without this crate. Columns and units:
//! `docs/formats.md`.
//!
//! ```text
//! app.iso/meta.parquet            key, value                       state
//!         sites.parquet           one row a site                   state
//!         extents.parquet         one row an extent, as last seen  state
//!         counts.parquet          one row a counter                state
//!         sources.parquet         one row a source                 state
//!         sensitivity.parquet     one row a timed run, added later state
//!         isolation.parquet       one row a run with a site alone  state
//!         code.parquet            accesses by site and instruction state
//!         frames-000000.parquet   callers of the sites             log
//!         heat-000000.parquet     accesses by epoch and chunk      log
//!         resident-000000.parquet RSS by epoch and site            log
//!         epochs-000000.parquet   epochs, the commit record        log
//! ```
//!
//! **Nothing is lost to a kill.** Every file is written under a hidden temporary name, flushed to
//! the device and renamed, so a name that ends in `.parquet` is always whole. A *state* table has
//! one file, which each epoch that changes it replaces. A *log* table grows by epochs in numbered
//! files: the last one is written anew, with the rows of one more epoch, until it is full
//! (16,384 rows or 256 epochs), and then the next number begins. One rename replaces a file by
//! one that holds all of its rows and more, so there are few files, no merging, and no moment at
//! which a row is missing or double. The epochs table is written last: rows of an epoch it does
//! not name belong to an epoch that was cut short, and are left out on reading. The last epoch is written
//! with the end of the recording: a short run has no other, and would write each table twice.
//!
//! A profile that is overwritten is put aside (`.app.iso.before`) until the new one has an epoch that
//! tells something, and put back where it never has.
//!
//! One writer at a time: it locks the directory, and others refuse a directory that is locked. Readers do not look at the lock.
//!
//! ```no_run
//! use isotherm_model::{port::Recorder, profile::{Ending, Meta, Segment}};
//! use isotherm_profile::{Existing, Writer};
//! let mut writer = Writer::create("app.iso".as_ref(), &Meta::default(), Existing::Refuse)?;
//! writer.record(&Segment::default())?;
//! writer.finish(Ending::Exited(0), &[])?;
//! let (profile, warnings) = isotherm_profile::read("app.iso".as_ref())?;
//! # Ok::<(), isotherm_profile::Error>(())
//! ```
//!
//! Modules are listed bottom-up: each uses only those above it.
#![forbid(unsafe_code)]

mod checksum;
mod layout;
mod column;
mod error;
mod lock;
mod recognition;
mod kinds;
mod tables;
mod meta;
mod backup;
mod log;
mod frame_files;
mod reader;
mod writer;
mod addition;

pub use addition::{add_isolation, add_sensitivity, check_addition};
pub use error::{Error, Warning};
pub use layout::{FORMAT_VERSION, META_FILE};
pub use reader::{read, read_files};
pub use recognition::is_profile;
pub use writer::{Existing, FinishOutcome, Writer};
