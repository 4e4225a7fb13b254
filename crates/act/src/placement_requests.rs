//! Writes placement requests: the tier of a site's data, for the runtime of a running program.
//!
//! The runtime memory-maps its session file as shared, so a four-byte write into the file reaches
//! it. On the emulated pair the request is [`ArenaRecord::wanted_tier`] of the site's arena (or of
//! its mapping) and the runtime's service thread moves the data within a few milliseconds. On real
//! nodes it is [`ArenaRecord::tier`], which the runtime reads when the arena grows; existing data
//! is moved from outside ([`crate::site_moves`]). Nothing is memory-mapped here.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use isotherm_abi::VERSION;
use isotherm_abi::session::{ArenaRecord, MAGIC, MappingRecord, SessionHeader, SiteRecord};
use isotherm_model::batch::{Extent, Process};
use isotherm_model::outcome::{Action, Fate, Outcome};
use isotherm_model::port::Executor;
use isotherm_model::site::SiteId;
use isotherm_sys::private::check_file;

/// Writes requests into the session files of one run.
#[derive(Debug)]
pub struct PlacementRequestWriter {
    directory: PathBuf,
    open: BTreeMap<Process, Session>,
    word: RequestWord,
}

/// The word of a record that holds a request.
#[derive(Clone, Copy, Debug)]
enum RequestWord {
    /// Read by the service thread, which moves the data.
    Wanted,
    /// Read by the runtime when it extends the arena for new data.
    Tier,
}

impl RequestWord {
    const fn of_arena(self) -> usize {
        match self {
            Self::Wanted => std::mem::offset_of!(ArenaRecord, wanted_tier),
            Self::Tier => std::mem::offset_of!(ArenaRecord, tier),
        }
    }

    const fn of_mapping(self) -> usize {
        match self {
            Self::Wanted => std::mem::offset_of!(MappingRecord, wanted_tier),
            Self::Tier => std::mem::offset_of!(MappingRecord, tier),
        }
    }
}

/// One open session file and its known sites.
#[derive(Debug)]
struct Session {
    file: File,
    tables: Tables,
    /// Index of each site read so far.
    sites: BTreeMap<SiteId, u32>,
    sites_read: u32,
}

/// Counts and offsets from the header.
#[derive(Clone, Copy, Debug, Default)]
struct Tables {
    site_slots: u32,
    arena_slots: u32,
    mapping_slots: u32,
    sites: u64,
    arenas: u64,
    mappings: u64,
}

impl Tables {
    /// True if every record is behind the header and before the end of a file of this size:
    /// otherwise a process that can write the session directory could make us write anywhere in the
    /// file, the header included, or extend it.
    fn lie_within(&self, file_bytes: u64) -> bool {
        let lies = |start: u64, slots: u32, record: usize| {
            let bytes = u64::from(slots) * record as u64;
            start >= size_of::<SessionHeader>() as u64
                && start
                    .checked_add(bytes)
                    .is_some_and(|end| end <= file_bytes)
        };
        lies(self.sites, self.site_slots, size_of::<SiteRecord>())
            && lies(self.arenas, self.arena_slots, size_of::<ArenaRecord>())
            && lies(
                self.mappings,
                self.mapping_slots,
                size_of::<MappingRecord>(),
            )
    }
}

pub(crate) fn read_u32(file: &File, at: u64) -> io::Result<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, at)?;
    Ok(u32::from_ne_bytes(bytes))
}

pub(crate) fn read_u64(file: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn field<T>(table: u64, index: u32, offset: usize) -> u64 {
    table + u64::from(index) * size_of::<T>() as u64 + offset as u64
}

/// Opens a session file of this version for reading and writing. Only this user may be able to
/// write it: otherwise another user's program could send commands, or receive our writes.
pub(crate) fn open_session(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    check_file(&file)?;
    let mut magic = [0; 8];
    file.read_exact_at(&mut magic, 0)?;
    let version = read_u32(&file, std::mem::offset_of!(SessionHeader, version) as u64)?;
    if magic != MAGIC || version != VERSION {
        return Err(io::Error::other("not a session file of this version"));
    }
    Ok(file)
}

impl Session {
    fn open(path: &Path) -> io::Result<Self> {
        use std::mem::offset_of;
        let file = open_session(path)?;
        let number = |offset: usize| read_u32(&file, offset as u64);
        let place = |offset: usize| read_u64(&file, offset as u64);
        let tables = Tables {
            site_slots: number(offset_of!(SessionHeader, site_slots))?,
            arena_slots: number(offset_of!(SessionHeader, arena_slots))?,
            mapping_slots: number(offset_of!(SessionHeader, mapping_slots))?,
            sites: place(offset_of!(SessionHeader, sites_offset))?,
            arenas: place(offset_of!(SessionHeader, arenas_offset))?,
            mappings: place(offset_of!(SessionHeader, mappings_offset))?,
        };
        if !tables.lie_within(file.metadata()?.len()) {
            return Err(io::Error::other("its tables do not lie within the file"));
        }
        Ok(Self {
            file,
            tables,
            sites: BTreeMap::new(),
            sites_read: 0,
        })
    }

    /// Reads the names of sites that are new since the last call.
    fn learn_sites(&mut self) -> io::Result<()> {
        use std::mem::offset_of;
        let count = read_u32(&self.file, offset_of!(SessionHeader, site_count) as u64)?;
        for index in self.sites_read..count.min(self.tables.site_slots) {
            let at = field::<SiteRecord>(self.tables.sites, index, offset_of!(SiteRecord, hash));
            let hash = read_u64(&self.file, at)?;
            if hash == 0 {
                break;
            }
            self.sites.insert(SiteId(hash), index);
            self.sites_read = index + 1;
        }
        Ok(())
    }

    fn write_u32(&self, at: u64, value: u32) -> io::Result<()> {
        self.file.write_all_at(&value.to_ne_bytes(), at)
    }

    /// Writes the request; true if the site has a record for it.
    fn request(&mut self, site: SiteId, tier: u32, word: RequestWord) -> io::Result<bool> {
        use std::mem::offset_of;
        self.learn_sites()?;
        let wanted = word.of_arena();
        if site == SiteId::SHARED {
            if self.tables.arena_slots == 0 {
                return Ok(false);
            }
            self.write_u32(field::<ArenaRecord>(self.tables.arenas, 0, wanted), tier)?;
            return Ok(true);
        }
        let Some(&index) = self.sites.get(&site) else {
            return Ok(false);
        };
        let mut found = false;
        let arena_at = field::<SiteRecord>(self.tables.sites, index, offset_of!(SiteRecord, arena));
        let arena = read_u32(&self.file, arena_at)?;
        if arena != 0 && arena < self.tables.arena_slots {
            self.write_u32(
                field::<ArenaRecord>(self.tables.arenas, arena, wanted),
                tier,
            )?;
            found = true;
        }
        Ok(self.request_mappings(index, tier, word)? || found)
    }

    fn request_mappings(&self, site: u32, tier: u32, word: RequestWord) -> io::Result<bool> {
        use std::mem::offset_of;
        let count = read_u32(&self.file, offset_of!(SessionHeader, mapping_count) as u64)?;
        let mut found = false;
        for index in 0..count.min(self.tables.mapping_slots) {
            let at = |offset| field::<MappingRecord>(self.tables.mappings, index, offset);
            let owner = read_u32(&self.file, at(offset_of!(MappingRecord, site)))?;
            let bytes = read_u64(&self.file, at(offset_of!(MappingRecord, bytes)))?;
            if owner == site && bytes > 0 {
                self.write_u32(at(word.of_mapping()), tier)?;
                found = true;
            }
        }
        Ok(found)
    }
}

impl PlacementRequestWriter {
    /// Requests moves by the runtime's service thread, for the session files in this directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self::of(directory, RequestWord::Wanted)
    }

    /// Requests the tier of new data only, for the session files in this directory.
    #[must_use]
    pub fn placing(directory: PathBuf) -> Self {
        Self::of(directory, RequestWord::Tier)
    }

    const fn of(directory: PathBuf, word: RequestWord) -> Self {
        Self {
            directory,
            open: BTreeMap::new(),
            word,
        }
    }

    fn session(&mut self, process: Process) -> io::Result<&mut Session> {
        use std::collections::btree_map::Entry;
        match self.open.entry(process) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let name = format!("{}.{}", process.pid, process.image);
                Ok(entry.insert(Session::open(&self.directory.join(name))?))
            }
        }
    }

    /// Writes one request.
    pub(crate) fn one(&mut self, action: &Action) -> Fate {
        let word = self.word;
        let session = match self.session(action.process) {
            Ok(session) => session,
            Err(error) => {
                let name = format!("process {}", action.process.pid);
                let why = format!("{name} has no session file: {error}");
                return Fate::NotAttempted(why.into());
            }
        };
        match session.request(action.site, action.tier.0, word) {
            Ok(true) => Fate::Requested,
            Ok(false) => Fate::NotAttempted("the site has no arena of its own".into()),
            Err(error) => Fate::Denied(format!("the session file cannot be written: {error}")),
        }
    }
}

impl Executor for PlacementRequestWriter {
    fn execute(&mut self, actions: &[Action], _: &[Extent]) -> Vec<Outcome> {
        actions
            .iter()
            .map(|action| Outcome {
                action: *action,
                fate: self.one(action),
            })
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::PlacementRequestWriter;
    use isotherm_abi::session::{ArenaRecord, SessionHeader, SessionLayout, SiteRecord};
    use isotherm_abi::{VERSION, session};
    use isotherm_model::batch::Process;
    use isotherm_model::outcome::{Action, Fate};
    use isotherm_model::port::Executor;
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;
    use std::fs::File;
    use std::mem::offset_of;
    use std::os::unix::fs::FileExt;

    /// A session file with one site, hash 0x55, in arena 3.
    pub(crate) fn session_file(path: &std::path::Path) -> File {
        let layout = SessionLayout::for_pool(1 << 30);
        let [_, sites, arenas, _, mappings, .., end] = layout.offsets();
        let file = File::options()
            .create_new(true)
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        file.set_len(end).unwrap();
        let put = |at: usize, bytes: &[u8]| file.write_all_at(bytes, at as u64).unwrap();
        put(0, &session::MAGIC);
        put(offset_of!(SessionHeader, version), &VERSION.to_ne_bytes());
        put(offset_of!(SessionHeader, site_count), &1_u32.to_ne_bytes());
        put(
            offset_of!(SessionHeader, site_slots),
            &layout.site_slots.to_ne_bytes(),
        );
        put(
            offset_of!(SessionHeader, arena_slots),
            &layout.arena_slots.to_ne_bytes(),
        );
        put(
            offset_of!(SessionHeader, sites_offset),
            &sites.to_ne_bytes(),
        );
        put(
            offset_of!(SessionHeader, arenas_offset),
            &arenas.to_ne_bytes(),
        );
        put(
            offset_of!(SessionHeader, mappings_offset),
            &mappings.to_ne_bytes(),
        );
        put(
            sites as usize + offset_of!(SiteRecord, hash),
            &0x55_u64.to_ne_bytes(),
        );
        put(
            sites as usize + offset_of!(SiteRecord, arena),
            &3_u32.to_ne_bytes(),
        );
        file
    }

    pub(crate) fn action(pid: u32, site: u64) -> Action {
        let process = Process { pid, image: 0 };
        Action {
            process,
            site: SiteId(site),
            tier: TierIndex(1),
            bytes: Bytes(4096),
        }
    }

    #[test]
    fn a_wish_lands_in_the_arena_of_the_site_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = session_file(&dir.path().join("7.0"));
        let mut requests = PlacementRequestWriter::new(dir.path().to_owned());
        let outcomes = requests.execute(&[action(7, 0x55)], &[]);
        assert_eq!(outcomes[0].fate, Fate::Requested);
        let arenas = SessionLayout::for_pool(1 << 30).offsets()[2];
        let wanted = |arena: u64| {
            let record = arenas + arena * size_of::<ArenaRecord>() as u64;
            let at = record + offset_of!(ArenaRecord, wanted_tier) as u64;
            super::read_u32(&file, at).unwrap()
        };
        assert_eq!((wanted(3), wanted(0), wanted(4)), (1, 0, 0));
        let tier_of = |arena: u64| {
            let record = arenas + arena * size_of::<ArenaRecord>() as u64;
            super::read_u32(&file, record + offset_of!(ArenaRecord, tier) as u64).unwrap()
        };
        assert_eq!(tier_of(3), 0, "the runtime says itself where the data is");
        let mut placing = PlacementRequestWriter::placing(dir.path().to_owned());
        let outcomes = placing.execute(&[action(7, 0x55)], &[]);
        assert_eq!(outcomes[0].fate, Fate::Requested);
        assert_eq!((tier_of(3), tier_of(0), tier_of(4)), (1, 0, 0));
    }

    #[test]
    fn a_table_that_does_not_lie_within_the_file_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let file = session_file(&dir.path().join("7.0"));
        let bytes = file.metadata().unwrap().len();
        let [_, _, arenas, ..] = SessionLayout::for_pool(1 << 30).offsets();
        let at = offset_of!(SessionHeader, arenas_offset) as u64;
        // The header, just past the end, far past it, and around the largest number.
        for offset in [0, bytes, 1 << 60, u64::MAX - 8] {
            file.write_all_at(&offset.to_ne_bytes(), at).unwrap();
            let mut requests = PlacementRequestWriter::new(dir.path().to_owned());
            for outcome in requests.execute(&[action(7, 0x55), action(7, SiteId::SHARED.0)], &[]) {
                assert!(matches!(outcome.fate, Fate::NotAttempted(_)), "{outcome:?}");
            }
            assert_eq!(file.metadata().unwrap().len(), bytes);
        }
        file.write_all_at(&arenas.to_ne_bytes(), at).unwrap();
        let mut requests = PlacementRequestWriter::new(dir.path().to_owned());
        assert_eq!(
            requests.execute(&[action(7, 0x55)], &[])[0].fate,
            Fate::Requested
        );
    }

    #[test]
    fn a_file_without_room_for_arenas_gets_no_wish_for_the_shared_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = session_file(&dir.path().join("7.0"));
        let bytes = file.metadata().unwrap().len();
        let offset = offset_of!(SessionHeader, arenas_offset) as u64;
        let slots = offset_of!(SessionHeader, arena_slots) as u64;
        file.write_all_at(&bytes.to_ne_bytes(), offset).unwrap();
        file.write_all_at(&0_u32.to_ne_bytes(), slots).unwrap();
        let mut requests = PlacementRequestWriter::new(dir.path().to_owned());
        let outcome = requests.execute(&[action(7, SiteId::SHARED.0)], &[]);
        assert!(matches!(outcome[0].fate, Fate::NotAttempted(_)));
        assert_eq!(file.metadata().unwrap().len(), bytes);
    }

    #[test]
    fn an_unknown_site_or_process_is_named_as_not_attempted() {
        let dir = tempfile::tempdir().unwrap();
        let _file = session_file(&dir.path().join("7.0"));
        let mut requests = PlacementRequestWriter::new(dir.path().to_owned());
        for outcome in requests.execute(&[action(7, 0x66), action(8, 0x55)], &[]) {
            assert!(matches!(outcome.fate, Fate::NotAttempted(_)), "{outcome:?}");
        }
    }
}
