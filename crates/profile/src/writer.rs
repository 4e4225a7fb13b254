//! [`Writer`] writes a profile while the program runs, epoch by epoch, and its end, with its directory locked against other writers. Where
//! a profile is at the path, it refuses, or replaces that one and puts it back if the new one holds nothing or, on request, is not finished
//! ([`Existing`]). [`replace`] writes the files of tables so that each name always holds a whole file.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isotherm_model::batch::{Count, Extent, Process, SourceReport};
use isotherm_model::code_access::CodeAccess;
use isotherm_model::port::Recorder;
use isotherm_model::profile::{Ending, EpochSpan, Heat, Meta, Resident, Segment};
use isotherm_model::site::{Frame, Site, SiteId};
use isotherm_sys::files::{Directory, followed_output};
use tempfile::{PathPersistError, TempPath};

use parquet::errors::ParquetError;

use crate::backup::ProfileBackup;
use crate::column;
use crate::error::Error;
use crate::frame_files::FrameFiles;
use crate::layout::{Table, is_temporary, temporary};
use crate::lock::open_locked;
use crate::log::Log;
use crate::meta;
use crate::recognition::{is_empty, is_profile, recognised};
use crate::tables::{Columns, FrameRow, Row};

/// What to do with a profile that is at the path already. Anything that is not a profile is left
/// alone either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse.
    Refuse,
    /// Replace its tables; files that are not ours stay. It is put aside, removed with the first epoch
    /// that tells something, and put back where none does.
    Overwrite,
    /// As `Overwrite`, but the former profile is put back unless the new one is finished: for a profile that is written at once.
    OverwriteAtEnd,
}

/// Which profile is at the path when one is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishOutcome {
    /// The new one.
    New,
    /// The one that was to be overwritten: the new one held nothing, or [`Writer::keep_former`] was called.
    Former,
}

/// Writes a profile, one call an epoch. See the crate's page for what a kill leaves.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    /// Locked against other writers.
    directory: Directory,
    meta: Meta,
    sites: State<BTreeMap<SiteId, Site>>,
    extents: State<BTreeMap<(Process, u64), Extent>>,
    counts: State<Vec<Count>>,
    sources: State<Vec<SourceReport>>,
    code: State<BTreeMap<Pair, CodeAccess>>,
    /// Instructions with their functions and lines, for the end.
    code_names: Vec<Arc<Frame>>,
    frames: FrameFiles,
    heat: Log<Heat>,
    resident: Log<Resident>,
    epochs: Log<EpochSpan>,
    noted_epochs: usize,
    kept_epochs: usize,
    /// True once the meta data was flushed to the device.
    meta_is_durable: bool,
    /// The overwritten profile, while it can be put back.
    former: Option<ProfileBackup>,
    existing: Existing,
    /// True where a site, an access or resident memory was noted.
    tells: bool,
    /// True where nothing that is noted replaces the former profile.
    keeps_former: bool,
}

/// A row of the code table by its site, module and address.
type Pair = (SiteId, Arc<str>, u64);

/// A table that is replaced as a whole.
#[derive(Debug, Default)]
struct State<T> {
    now: T,
    dirty: bool,
}

impl<T: Clone + PartialEq> State<Vec<T>> {
    /// Replaces the rows by these, if there are any.
    fn renew(&mut self, rows: &[T]) {
        if !rows.is_empty() && rows != self.now {
            self.now = rows.to_vec();
            self.dirty = true;
        }
    }
}

impl<T> State<T> {
    /// The only file of the table, with these rows, if they changed.
    fn pending<'a, R: Row + 'a>(
        &self,
        rows: impl IntoIterator<Item = &'a R> + Clone + Sync + 'a,
    ) -> Option<Pending<'a>> {
        self.dirty.then(|| Pending::of(R::TABLE.file(0), rows))
    }
}

impl Writer {
    /// Makes the directory and writes the meta data, so that a profile is there from the first
    /// moment on.
    ///
    /// # Errors
    /// There is a profile and `existing` says to refuse; anything else than an empty directory is at the path, or it cannot be read;
    /// another writer writes there; the parent directory is missing or may not be written.
    pub fn create(path: &Path, meta: &Meta, existing: Existing) -> Result<Self, Error> {
        let Place {
            made,
            directory,
            former,
        } = prepare(path, existing)?;
        let writer = Self {
            path: path.to_owned(),
            directory,
            meta: meta.clone(),
            sites: State::default(),
            extents: State::default(),
            counts: State::default(),
            sources: State::default(),
            code: State::default(),
            code_names: Vec::new(),
            frames: FrameFiles::default(),
            heat: Log::new(),
            resident: Log::new(),
            epochs: Log::new(),
            noted_epochs: 0,
            kept_epochs: 0,
            meta_is_durable: false,
            former,
            existing,
            tells: false,
            keeps_former: false,
        };
        // A program waits to be started, and a flush to the device takes a moment: the first epoch does it.
        let meta = Pending {
            durable: false,
            is_first: true,
            ..writer.meta_file(Ending::Unknown)
        };
        let started = writer.replace(&[meta]);
        if started.is_err() && made {
            // Only an empty directory can be removed so; the error at hand is the one to tell.
            let _ = fs::remove_dir(path);
        }
        match started {
            Err(Error::Write { cause, .. }) if cause.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::BeingRecorded(path.to_owned()))
            }
            started => started.map(|()| writer),
        }
    }

    /// Writes the end of the run. `symbolised` holds sites whose frames have got functions and
    /// source lines since; sites it does not name stay as recorded.
    ///
    /// # Errors
    /// Something could not be written. What was recorded stays readable, and so does each part
    /// of the end that was written.
    pub fn finish(mut self, ending: Ending, symbolised: &[Site]) -> Result<FinishOutcome, Error> {
        self.end(ending, symbolised).map_err(|error| match error {
            Error::Write {
                path,
                cause,
                kept_epochs,
            } => Error::Finish {
                path,
                cause,
                kept_epochs,
            },
            other => other,
        })
    }

    /// Puts the overwritten profile back at the end, unless an epoch has replaced it: for a program that never began, of which the
    /// accesses of its loader may have been sampled.
    pub const fn keep_former(&mut self) {
        self.keeps_former = true;
    }

    const fn replaces_former(&self) -> bool {
        self.tells && !self.keeps_former
    }

    /// Names the code that accessed data when the profile is finished: instructions with these modules and addresses get their functions
    /// and lines.
    pub fn name_code(&mut self, named: Vec<Arc<Frame>>) {
        self.code_names = named;
    }

    fn note_code_names(&mut self) {
        let names = std::mem::take(&mut self.code_names);
        let names = names.iter();
        let names = names.map(|frame| ((&*frame.module, frame.offset), frame));
        let names: HashMap<(&str, u64), &Arc<Frame>> = names.collect();
        for ((_, module, offset), row) in &mut self.code.now {
            if let Some(frame) = names.get(&(&**module, *offset))
                && row.code != **frame
            {
                row.code = Arc::clone(frame);
                self.code.dirty = true;
            }
        }
    }

    /// Adds the last epoch of a run, which [`Self::finish`] writes. A short run has one epoch, whose tables would all be written twice within
    /// a moment.
    pub fn add_last(&mut self, last: &Segment) {
        self.note(last);
    }

    fn end(&mut self, ending: Ending, symbolised: &[Site]) -> Result<FinishOutcome, Error> {
        self.note_sites(symbolised);
        self.note_code_names();
        self.flush(Some(ending))?;
        self.sync()?;
        match self.former.take() {
            Some(former) if self.replaces_former() => former.remove(),
            Some(former) => {
                let back = former.put_back();
                back.map_err(|cause| self.failed(self.path.clone(), cause))?;
                return Ok(FinishOutcome::Former);
            }
            None => {}
        }
        Ok(FinishOutcome::New)
    }

    /// Flushes the names of the files to the device.
    fn sync(&self) -> Result<(), Error> {
        let synced = self.directory.sync();
        synced.map_err(|cause| self.failed(self.path.clone(), cause))
    }

    /// The path of the profile, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn note_sites(&mut self, sites: &[Site]) {
        let mut new = Vec::new();
        for site in sites {
            let known = self.sites.now.get(&site.id);
            match known {
                None if !site.frames.is_empty() => new.push((site.id, site.frames.len())),
                Some(known) if known.frames != site.frames => self.frames.renamed(site.id),
                _ => {}
            }
            let peak_rss = known.map_or(site.peak_rss, |known| known.peak_rss.max(site.peak_rss));
            let site = Site {
                peak_rss,
                ..site.clone()
            };
            if known != Some(&site) {
                self.sites.now.insert(site.id, site);
                self.sites.dirty = true;
            }
        }
        self.frames.push(new);
    }

    fn callers(&self, id: SiteId) -> impl Iterator<Item = FrameRow<'_>> {
        let site = self.sites.now.get(&id).into_iter();
        let frames = site.flat_map(|site| (0..).zip(site.frames.iter()));
        frames.map(move |(depth, frame)| FrameRow {
            site: id,
            depth,
            frame: Cow::Borrowed(frame),
        })
    }

    fn note(&mut self, segment: &Segment) {
        self.note_sites(&segment.sites);
        for extent in &segment.extents {
            let key = (extent.process, extent.address);
            self.extents.dirty |= self.extents.now.insert(key, *extent) != Some(*extent);
        }
        self.heat.push(segment.heat.iter().copied());
        self.resident.push(segment.resident.iter().copied());
        self.epochs.push([segment.epoch]);
        for row in &segment.code {
            let key = (row.site, Arc::clone(&row.code.module), row.code.offset);
            self.code.now.insert(key, row.clone());
            self.code.dirty = true;
        }
        self.noted_epochs += 1;
        let (sites, heat) = (&segment.sites, &segment.heat);
        self.tells |= !(sites.is_empty() && heat.is_empty() && segment.resident.is_empty());
        self.counts.renew(&segment.counts);
        self.sources.renew(&segment.sources);
    }

    /// Writes all that is not on disk yet, the commit record last, and then the ending. What fails stays
    /// pending and is tried again with the next epoch.
    fn flush(&mut self, ending: Option<Ending>) -> Result<(), Error> {
        let mut files = self.pending();
        if ending.is_some() || !self.meta_is_durable {
            files.push(self.meta_file(ending.unwrap_or(Ending::Unknown)));
        }
        self.replace(&files)?;
        drop(files);
        self.meta_is_durable = true;
        self.sites.dirty = false;
        self.extents.dirty = false;
        self.counts.dirty = false;
        self.sources.dirty = false;
        self.code.dirty = false;
        self.frames.written();
        self.heat.written();
        self.resident.written();
        self.epochs.written();
        self.kept_epochs = self.noted_epochs;
        Ok(())
    }

    /// The files that differ from what is on disk, in the order in which they are to appear there.
    fn pending(&self) -> Vec<Pending<'_>> {
        let mut files = Vec::new();
        files.extend(self.sites.pending(self.sites.now.values()));
        files.extend(self.extents.pending(self.extents.now.values()));
        files.extend(self.counts.pending(&self.counts.now));
        files.extend(self.sources.pending(&self.sources.now));
        files.extend(self.code.pending(self.code.now.values()));
        files.extend(self.frames.pending().map(|(file, sites)| {
            Pending::made(file, move || {
                sites.iter().flat_map(|id| self.callers(*id)).collect()
            })
        }));
        files.extend(Pending::last(&self.heat));
        files.extend(Pending::last(&self.resident));
        files.extend(Pending::last(&self.epochs));
        files
    }

    fn meta_file(&self, ending: Ending) -> Pending<'_> {
        Pending::made(Table::Meta.file(0), move || meta::rows(&self.meta, ending))
    }

    fn replace(&self, files: &[Pending<'_>]) -> Result<(), Error> {
        replace(&self.directory.path(), files)
            .map_err(|(file, cause)| self.failed(self.path.join(file), cause))
    }

    fn failed(&self, path: PathBuf, cause: io::Error) -> Error {
        if !self.directory.is_at(&self.path) {
            return Error::Removed(self.path.clone());
        }
        Error::Write {
            path,
            cause,
            kept_epochs: self.kept_epochs,
        }
    }
}

impl Recorder for Writer {
    type Error = Error;

    fn record(&mut self, segment: &Segment) -> Result<(), Error> {
        self.note(segment);
        self.flush(None)?;
        if self.replaces_former()
            && self.existing == Existing::Overwrite
            && let Some(former) = self.former.take()
        {
            // The names of the files must be on the device too before the former ones go.
            let synced = self.sync();
            if synced.is_ok() {
                former.remove();
            } else {
                self.former = Some(former);
            }
            synced?;
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(former) = self.former.take() {
            // What cannot be put back stays aside, whole, and the next writer tries again.
            let _ = former.put_back();
        }
    }
}

/// A file to be written, and the function that encodes it. Several files are encoded by a thread each, because the tables of sites and
/// frames take some milliseconds.
pub(crate) struct Pending<'a> {
    file: String,
    /// True where it is flushed to the device before it gets its name.
    durable: bool,
    /// True for the file that begins the profile, which replaces none: where two writers begin one that no lock separates, one gets it.
    is_first: bool,
    encode: Box<dyn Fn() -> Result<Vec<u8>, ParquetError> + Sync + 'a>,
}

impl<'a> Pending<'a> {
    /// A file of rows that are made when it is encoded.
    fn made<R: Row>(file: String, rows: impl Fn() -> Vec<R> + Sync + 'a) -> Self {
        Self::encoded::<R>(file, move || R::columns(&Vec::from_iter(&rows())))
    }

    /// A file of rows that are there.
    pub(crate) fn of<R: Row + 'a>(
        file: String,
        rows: impl IntoIterator<Item = &'a R> + Clone + Sync + 'a,
    ) -> Self {
        Self::encoded::<R>(file, move || R::columns(&Vec::from_iter(rows.clone())))
    }

    fn encoded<R: Row>(file: String, columns: impl Fn() -> Columns + Sync + 'a) -> Self {
        Self {
            file,
            durable: true,
            is_first: false,
            encode: Box::new(move || column::encode(R::TABLE, columns())),
        }
    }

    /// The last file of a log, where rows were added.
    fn last<R: Row + Sync>(log: &'a Log<R>) -> Option<Self> {
        log.pending().map(|(file, rows)| Self::of(file, rows))
    }
}

/// Mode of a table before the process's umask, as of any new file.
const TABLE_MODE: u32 = 0o666;

/// Writes all files under temporary names, flushes them to the device, and renames them in order:
/// at every moment each name holds either the whole old file or the whole new one, and where one
/// cannot be written, none is renamed. Half-written files are removed: they would keep the space whose
/// lack may be the reason.
///
/// They are written at the same time, because flushing one after the other costs a turn of the file
/// system's journal each (8 ms on a virtual disk, so 50 ms for an epoch), and together one for all.
pub(crate) fn replace(directory: &Path, files: &[Pending<'_>]) -> Result<(), (String, io::Error)> {
    let written = match files {
        [file] => vec![written(directory, file)],
        _ => written_at_once(directory, files),
    };
    let mut whole = Vec::with_capacity(files.len());
    for (file, written) in files.iter().zip(written) {
        whole.push(written.map_err(|cause| (file.file.clone(), cause))?);
    }
    for (file, temporary) in files.iter().zip(whole) {
        let name = directory.join(&file.file);
        let renamed = match file.is_first {
            true => persist_first(temporary, &name),
            false => temporary.persist(&name),
        };
        renamed.map_err(|failed| (file.file.clone(), failed.error))?;
    }
    Ok(())
}

/// Renames the file unless the name is taken; where the file system cannot tell, in any case.
fn persist_first(temporary: TempPath, name: &Path) -> Result<(), PathPersistError> {
    match temporary.persist_noclobber(name) {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => {
            failed.path.persist(name)
        }
        renamed => renamed,
    }
}

/// Each file on a thread of its own.
fn written_at_once(directory: &Path, files: &[Pending<'_>]) -> Vec<io::Result<TempPath>> {
    std::thread::scope(|scope| {
        let writers: Vec<_> = files
            .iter()
            .map(|file| {
                std::thread::Builder::new().spawn_scoped(scope, || written(directory, file))
            })
            .collect();
        let results = files.iter().zip(writers);
        results
            .map(|(file, writer)| match writer {
                Ok(writer) => writer
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("the writer panicked"))),
                // Where no thread may be made it is only slower.
                Err(_) => written(directory, file),
            })
            .collect()
    })
}

/// A file that is whole and, where it is to be durable, on the device, under a random name that did not exist before.
fn written(directory: &Path, file: &Pending<'_>) -> io::Result<TempPath> {
    let bytes = (file.encode)().map_err(io::Error::other)?;
    let (begin, end) = temporary(&file.file);
    let mut out = tempfile::Builder::new()
        .prefix(&begin)
        .suffix(end)
        // Made and written here, because errors of `tempfile` end with its random name, and would be another sentence in each epoch.
        .make_in(directory, |path| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(TABLE_MODE);
            options.open(path)
        })?;
    out.as_file_mut().write_all(&bytes)?;
    if file.durable {
        out.as_file().sync_data()?;
    }
    Ok(out.into_temp_path())
}

/// The directory for a new profile, and the former profile.
struct Place {
    /// True where there was nothing.
    made: bool,
    directory: Directory,
    former: Option<ProfileBackup>,
}

/// Makes the directory or, where that was asked for, puts aside the profile that is there.
fn prepare(path: &Path, existing: Existing) -> Result<Place, Error> {
    let failed = |cause| Error::Write {
        path: path.to_owned(),
        cause,
        kept_epochs: 0,
    };
    let target = followed_output(path).map_err(failed)?;
    let former = ProfileBackup::of(path);
    refuse_use(path, former.as_ref())?;
    if existing == Existing::Refuse && is_profile(path) {
        return Err(refusal(path, &target));
    }
    if let Some(former) = &former
        && (existing != Existing::Refuse || !path.exists())
    {
        former.tidy().map_err(failed)?;
    }
    let made = match fs::create_dir(path) {
        Ok(()) => true,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
        Err(e) => return Err(failed(e)),
    };
    let directory = locked(path, &target)?;
    // A writer that put the profile aside in the meantime is about to give its name to another directory.
    refuse_use(path, former.as_ref())?;
    let unreadable = |(path, cause)| Error::Read { path, cause };
    if is_empty(path).map_err(|cause| unreadable((path.to_owned(), cause)))? {
        remove_temporaries(&directory).map_err(failed)?;
        return Ok(Place {
            made,
            directory,
            former: None,
        });
    }
    match (recognised(path).map_err(unreadable)?, existing) {
        (false, _) => Err(Error::Occupied(path.to_owned())),
        (true, Existing::Refuse) => Err(Error::Exists(path.to_owned())),
        (true, Existing::Overwrite | Existing::OverwriteAtEnd) => {
            let mut former = former.ok_or_else(|| Error::Occupied(path.to_owned()))?;
            Ok(Place {
                made,
                directory: former.put_aside(directory).map_err(failed)?,
                former: Some(former),
            })
        }
    }
}

/// Why a profile is not written where one is. The lock is shared, so that several refused writers do not take each other for the recorder.
fn refusal(path: &Path, target: &Path) -> Error {
    match open_locked(target, Directory::lock_shared) {
        Ok(None) => Error::BeingRecorded(path.to_owned()),
        _ => Error::Exists(path.to_owned()),
    }
}

/// Refuses a path whose profile another writer has put aside.
fn refuse_use(path: &Path, former: Option<&ProfileBackup>) -> Result<(), Error> {
    match former.is_some_and(ProfileBackup::is_in_use) {
        true => Err(Error::BeingRecorded(path.to_owned())),
        false => Ok(()),
    }
}

/// The directory at the path, whose target is given too, locked against other writers. It may have been free for a moment between its
/// making and the lock: what another writer made of it is checked with the lock held.
fn locked(path: &Path, target: &Path) -> Result<Directory, Error> {
    // The writer that has the lock may put the profile aside before the first check, and write its first file before the second.
    let is_ours = || is_profile(path) || is_empty(path).unwrap_or(true) || is_profile(path);
    match open_locked(target, Directory::lock) {
        Ok(Some(directory)) => Ok(directory),
        // A lock on the directory of another program says nothing of profiles.
        Ok(None) if !is_ours() => Err(Error::Occupied(path.to_owned())),
        Ok(None) => Err(Error::BeingRecorded(path.to_owned())),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotADirectory => Error::Occupied(path.to_owned()),
            // Another writer puts the profile aside, or back.
            io::ErrorKind::NotFound => Error::BeingRecorded(path.to_owned()),
            _ => Error::Read {
                path: path.to_owned(),
                cause: error,
            },
        }),
    }
}

/// Removes the temporary files of a writer that was killed before its first table.
fn remove_temporaries(directory: &Directory) -> io::Result<()> {
    for entry in fs::read_dir(directory.path())? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_temporary) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::path::Path;

    use isotherm_model::profile::{Ending, Meta};

    use super::{Pending, replace};
    use crate::meta;

    fn first(command: &str) -> Pending<'static> {
        let meta = Meta {
            command: vec![command.to_owned()],
            ..Meta::default()
        };
        Pending {
            is_first: true,
            ..Pending::made("meta.parquet".to_owned(), move || {
                meta::rows(&meta, Ending::Unknown)
            })
        }
    }

    #[test]
    fn of_two_writers_that_no_lock_separates_one_begins_the_profile() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("meta.parquet");
        replace(directory.path(), &[first("one")]).unwrap();
        let begun = fs::read(&file).unwrap();
        let (name, refused) = replace(directory.path(), &[first("two")]).unwrap_err();
        assert_eq!(
            (&*name, refused.kind()),
            ("meta.parquet", ErrorKind::AlreadyExists)
        );
        assert_eq!(fs::read(&file).unwrap(), begun);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_error_does_not_name_the_random_temporary_file() {
        let (_, refused) = replace(Path::new("/nowhere"), &[first("one")]).unwrap_err();
        assert!(!refused.to_string().contains(".tmp"), "{refused}");
    }
}
