//! [`read()`] reads a profile, complete, cut short or damaged: it leaves out what it cannot use, with a [`Warning`] for each, and checks
//! what files claim, because they may be made to deceive. It fails where no file can be used, or where a newer Isotherm wrote one.
//! [`read_files`] does so from the contents of the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use isotherm_model::batch::{Epoch, Extent, Process};
use isotherm_model::isolation_runs::IsolationRuns;
use isotherm_model::profile::{Ending, EpochSpan, Heat, Profile, Resident};
use isotherm_model::sensitivity_runs::{SensitivityRuns, TierPair};
use isotherm_model::site::{Site, SiteId};
use isotherm_model::units::Accesses;
use isotherm_model::words::counted;
use isotherm_sys::files::read_input;

use crate::backup::ProfileBackup;
use crate::column::File;
use crate::error::{Error, Warning};
use crate::layout::{FORMAT_VERSION, PROFILE_BYTES, TABLE_BYTES, Table, is_temporary};
use crate::meta;
use crate::tables::{FrameRow, IsolationRow, Row, SensitivityRow};

/// Reads the profile at a path, and names each file that could not be used.
///
/// # Errors
/// Nothing is there, it is not a profile, it may not be read, or a newer Isotherm wrote it.
pub fn read(path: &Path) -> Result<(Profile, Vec<Warning>), Error> {
    let failed = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => match aside(path) {
            Some(aside) => Error::PutAside {
                path: path.to_owned(),
                aside,
            },
            None => Error::Missing(path.to_owned()),
        },
        io::ErrorKind::NotADirectory => Error::NotAProfile {
            path: path.to_owned(),
            found: "it is a file".to_owned(),
        },
        _ => Error::Read {
            path: path.to_owned(),
            cause,
        },
    };
    let names = names(path).map_err(failed)?;
    let mut unreadable = Vec::new();
    let mut bytes_left = PROFILE_BYTES;
    let files = names.into_iter().filter_map(|name| {
        Table::of_file(&name)?;
        match read_input(&path.join(&name), TABLE_BYTES.min(bytes_left)) {
            Ok(bytes) => {
                bytes_left -= bytes.len() as u64;
                Some((name, bytes))
            }
            Err(cause) => {
                unreadable.push((name, cause));
                None
            }
        }
    });
    let result = read_files(path, files);
    match (result, unreadable.is_empty()) {
        (Err(Error::NotAProfile { .. }), false) => {
            let (name, cause) = unreadable.remove(0);
            Err(Error::Read {
                path: path.join(name),
                cause,
            })
        }
        (Ok((profile, mut warnings)), _) => {
            // What is there and cannot be read is not missing.
            let is_there =
                |warning: &Warning| unreadable.iter().any(|(name, _)| *name == warning.file);
            warnings.retain(|warning| !is_there(warning));
            if profile.ending == Ending::Unknown
                && let Some(aside) = aside(path)
            {
                let aside = aside.display();
                let what = format!("the profile that it is to replace is still at {aside}");
                warnings.push(Warning::new("", what));
            }
            let lost = unreadable.into_iter();
            warnings.extend(lost.map(|(name, cause)| {
                let what = format!("it could not be read and was left out: {cause}");
                Warning::new(&name, what)
            }));
            Ok((profile, warnings))
        }
        (Err(error), _) => Err(error),
    }
}

/// The names in the directory, sorted.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        // A name that is not UTF-8 is none of ours.
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Path of the profile that was here before a new one was begun, if it is still put aside.
fn aside(path: &Path) -> Option<PathBuf> {
    let former = ProfileBackup::of(path)?;
    former.found_aside().map(Path::to_owned)
}

/// Reads a profile from the names and contents of its files; `path` is only for messages. This is
/// the part of [`read`] that faces hostile bytes.
///
/// # Errors
/// None of the files is part of a profile, or a newer Isotherm wrote one.
pub fn read_files(
    path: &Path,
    files: impl IntoIterator<Item = (String, Vec<u8>)>,
) -> Result<(Profile, Vec<Warning>), Error> {
    let mut parts = Parts::default();
    let mut found = 0;
    for (name, bytes) in files {
        if is_temporary(&name) {
            continue;
        }
        let Some((table, number)) = Table::of_file(&name) else {
            continue;
        };
        found += 1;
        match guarded(|| parts.add(table, bytes)) {
            Ok(()) => parts.seen.entry(table).or_default().push(number),
            Err(Refusal::Newer(version)) => {
                return Err(Error::Newer {
                    file: path.join(name),
                    version,
                });
            }
            Err(Refusal::Damaged(what)) => {
                parts.incomplete.insert(table);
                let what = format!("it was left out: {what}");
                parts.warnings.push(Warning::new(&name, what));
            }
        }
    }
    if parts.seen.is_empty() {
        return Err(Error::NotAProfile {
            path: path.to_owned(),
            found: match found {
                0 => "it holds no file of a profile".to_owned(),
                _ => "none of its files can be read".to_owned(),
            },
        });
    }
    Ok(parts.assemble())
}

/// Turns a panic into a refusal. The Parquet decoder asserts in some places what a footer made to
/// deceive can break (a data page that refers to a dictionary that is not there); the checksum
/// keeps accidents away from it. `add` changes the parts only after a file was decoded in full.
fn guarded(add: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(add))
        .unwrap_or_else(|_| Err("its pages contradict its footer".to_owned().into()))
}

/// Why a file was not used.
enum Refusal {
    Newer(u64),
    Damaged(String),
}

impl From<String> for Refusal {
    fn from(what: String) -> Self {
        Self::Damaged(what)
    }
}

/// The content of the files that were read so far.
#[derive(Default)]
struct Parts {
    profile: Profile,
    frames: Vec<FrameRow<'static>>,
    sensitivity: Vec<SensitivityRow>,
    isolation: Vec<IsolationRow>,
    /// Files that were used.
    seen: BTreeMap<Table, Vec<u32>>,
    /// Tables of which a file is damaged or missing.
    incomplete: BTreeSet<Table>,
    warnings: Vec<Warning>,
}

impl Parts {
    fn add(&mut self, table: Table, bytes: Vec<u8>) -> Result<(), Refusal> {
        let file = File::open(bytes.into())?;
        match file.version() {
            Some(version) if version > FORMAT_VERSION => return Err(Refusal::Newer(version)),
            Some(_) if file.is(table) => {}
            _ => return Err("it does not say that it is this table".to_owned().into()),
        }
        let profile = &mut self.profile;
        match table {
            Table::Meta => (profile.meta, profile.ending) = meta::read(Row::read(&file)?)?,
            Table::Sites => profile.sites = Row::read(&file)?,
            Table::Extents => profile.extents = Row::read(&file)?,
            Table::Counts => profile.counts = Row::read(&file)?,
            Table::Sources => profile.sources = Row::read(&file)?,
            Table::Sensitivity => self.sensitivity = Row::read(&file)?,
            Table::Isolation => self.isolation = Row::read(&file)?,
            Table::Code => profile.code = Row::read(&file)?,
            Table::Frames => self.frames.extend(FrameRow::read(&file)?),
            Table::Heat => profile.heat.extend(Heat::read(&file)?),
            Table::Resident => profile.resident.extend(Resident::read(&file)?),
            Table::Epochs => profile.epochs.extend(EpochSpan::read(&file)?),
        }
        Ok(())
    }

    fn assemble(mut self) -> (Profile, Vec<Warning>) {
        self.notice_gaps();
        self.settle_epochs();
        self.settle_sites();
        self.profile.sensitivity = self.settle_sensitivity();
        self.profile.isolation = self.settle_isolation();
        let profile = &mut self.profile;
        let place = |heat: &Heat| (heat.epoch, heat.process, heat.address);
        profile.heat.sort_by_key(place);
        profile.resident.sort_by_key(|resident| resident.epoch);
        profile.code.sort_by(|a, b| a.key().cmp(&b.key()));
        let extents = profile.extents.drain(..);
        let extents: BTreeMap<(Process, u64), Extent> = extents
            .map(|extent| ((extent.process, extent.address), extent))
            .collect();
        profile.extents = extents.into_values().collect();
        if profile.ending == Ending::Unknown {
            let epochs = counted(profile.epochs.len(), "epoch");
            let what = format!(
                "the recording was cut short or still runs: it has no ending; what is used: {epochs}"
            );
            self.warnings.push(Warning::new("", what));
        }
        (self.profile, self.warnings)
    }

    /// Names files that must have been there: the meta data, numbers before the last one, and the heat that other tables prove.
    fn notice_gaps(&mut self) {
        let mut missing = Vec::new();
        if self.lacks_heat() {
            missing.push((Table::Heat, Table::Heat.file(0)));
        }
        for table in Table::ALL {
            let seen = self.seen.get(&table).map_or(&[][..], Vec::as_slice);
            let damaged = self.incomplete.contains(&table);
            if table == Table::Meta && seen.is_empty() && !damaged {
                missing.push((table, table.file(0)));
            }
            // Numbers go up; a hole in them is named by its first file.
            let mut next = 0;
            for number in seen {
                if *number > next && !damaged {
                    missing.push((table, table.file(next)));
                }
                next = number.saturating_add(1);
            }
        }
        for (table, file) in missing {
            self.incomplete.insert(table);
            let what = "it is missing; what else is there is used";
            self.warnings.push(Warning::new(&file, what));
        }
    }

    /// Whether there is no file of heat, although instructions accessed sites. The table has no file where there are no rows, and a
    /// recording that was cut short may have written its code only.
    fn lacks_heat(&self) -> bool {
        let mut code = self.profile.code.iter();
        !self.seen.contains_key(&Table::Heat)
            && !self.incomplete.contains(&Table::Heat)
            && self.profile.ending != Ending::Unknown
            && code.any(|row| row.accesses != Accesses::ZERO)
    }

    /// Leaves out rows of an epoch that was cut short; where the commit records themselves were
    /// lost, takes every epoch that has rows.
    fn settle_epochs(&mut self) {
        let profile = &mut self.profile;
        let mut spans: BTreeMap<Epoch, EpochSpan> =
            profile.epochs.drain(..).map(|e| (e.epoch, e)).collect();
        let lost = self.incomplete.contains(&Table::Epochs)
            || (spans.is_empty() && !self.seen.contains_key(&Table::Epochs));
        let rows = profile.heat.iter().map(|heat| heat.epoch);
        let rows = rows.chain(profile.resident.iter().map(|resident| resident.epoch));
        let uncommitted: BTreeSet<Epoch> = rows.filter(|e| !spans.contains_key(e)).collect();
        if !uncommitted.is_empty() {
            let count = counted(uncommitted.len(), "epoch");
            let what = match lost {
                true => format!("the length of {count} is lost and taken to be what was asked for"),
                false => format!("left out, because the recording was cut short in it: {count}"),
            };
            self.warnings.push(Warning::new("", what));
        }
        if lost {
            let span = profile.meta.epoch_length;
            let derived = uncommitted.into_iter();
            spans.extend(derived.map(|epoch| (epoch, EpochSpan { epoch, span })));
        } else {
            profile.heat.retain(|heat| spans.contains_key(&heat.epoch));
            profile
                .resident
                .retain(|resident| spans.contains_key(&resident.epoch));
        }
        profile.epochs = spans.into_values().collect();
    }

    /// The timed runs, unless they belong to another recording.
    fn settle_sensitivity(&mut self) -> Option<SensitivityRuns> {
        let rows = std::mem::take(&mut self.sensitivity);
        let of = |row: &SensitivityRow| (row.started.clone(), row.tiers.clone());
        let again = "`isotherm sensitivity` measures them again";
        let (_, tiers) = self.measured_once(Table::Sensitivity, &rows, of, again)?;
        Some(SensitivityRuns {
            tiers: TierPair::from_text(tiers),
            runs: rows.into_iter().map(|row| row.run).collect(),
        })
    }

    /// The runs with a site alone in a tier, unless they belong to another recording.
    fn settle_isolation(&mut self) -> Option<IsolationRuns> {
        let rows = std::mem::take(&mut self.isolation);
        let counter = rows.first()?.counter;
        let of = |row: &IsolationRow| {
            let measured = format!("{} {}", row.counter.word(), row.tiers);
            (row.started.clone(), measured)
        };
        let again = "`isotherm record --isolate sites` measures them again";
        self.measured_once(Table::Isolation, &rows, of, again)?;
        Some(IsolationRuns {
            tiers: TierPair::from_text(rows.first()?.tiers.clone()),
            counter,
            runs: rows.into_iter().map(|row| row.run).collect(),
        })
    }

    /// The start of the recording and the conditions of an added table's rows. `None`, with a warning, where they belong to several
    /// measurements or to another recording: an Isotherm that does not know a table leaves it where it replaces the profile.
    fn measured_once<R>(
        &mut self,
        table: Table,
        rows: &[R],
        of: impl Fn(&R) -> (String, String),
        again: &str,
    ) -> Option<(String, String)> {
        let first = of(rows.first()?);
        let what = if rows.iter().any(|row| of(row) != first) {
            "it was left out: it holds runs of several measurements".to_owned()
        } else if first.0 != self.profile.meta.started {
            format!("it was left out: its runs are of another recording; {again}")
        } else {
            return Some(first);
        };
        self.warnings.push(Warning::new(&table.file(0), what));
        None
    }

    /// Joins sites and frames, and makes a site of each id that only other tables have.
    fn settle_sites(&mut self) {
        let profile = &mut self.profile;
        let sites = profile.sites.drain(..);
        let mut sites: BTreeMap<SiteId, Site> = sites.map(|site| (site.id, site)).collect();
        let mut orphans: BTreeSet<SiteId> = profile.heat.iter().map(|heat| heat.site).collect();
        orphans.extend(profile.resident.iter().map(|resident| resident.site));
        orphans.extend(profile.extents.iter().map(|extent| extent.site));
        orphans.retain(|id| !sites.contains_key(id));
        let lost =
            self.incomplete.contains(&Table::Sites) || !self.seen.contains_key(&Table::Sites);
        if lost && !orphans.is_empty() {
            let count = counted(orphans.len(), "site");
            let what = format!("the code location of {count} is lost");
            self.warnings.push(Warning::new("", what));
            for id in &orphans {
                sites.insert(*id, Site::nameless(*id));
            }
            let rows = profile.resident.iter();
            for resident in rows.filter(|row| orphans.contains(&row.site)) {
                if let Some(site) = sites.get_mut(&resident.site) {
                    site.peak_rss = site.peak_rss.max(resident.bytes);
                }
            }
        }
        self.frames.sort_by_key(|row| (row.site, row.depth));
        for rows in self.frames.chunk_by(|a, b| a.site == b.site) {
            if let Some(site) = sites.get_mut(&rows[0].site) {
                let frames = rows.iter().map(|row| row.frame.clone().into_owned());
                site.frames = frames.collect();
            }
        }
        profile.sites = sites.into_values().collect();
    }
}
