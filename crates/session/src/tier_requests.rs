//! [`SessionFile::request_tier`] requests a tier for a site's data: writes it into the record of the site's own arena, if it has one, and
//! those of its mappings; for the site `shared`, into the record of the shared arena. The caller chooses the word of the record
//! ([`RequestWord`]): one by which the emulated pair moves all data of the site, or one by which real nodes place its new data.

use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use isotherm_abi::session::{ArenaRecord, MappingRecord, SHARED_ARENA, SiteRecord};
use isotherm_model::site::SiteId;

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::header::{Progress, Table};

/// The word of a record that holds a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestWord {
    /// Read by the service thread of the emulated pair, which moves the data ([`ArenaRecord::wanted_tier`]).
    Wanted,
    /// Read by the runtime when it extends the arena for new data ([`ArenaRecord::tier`]).
    Tier,
}

impl RequestWord {
    const fn of_arena(self) -> usize {
        match self {
            Self::Wanted => offset_of!(ArenaRecord, wanted_tier),
            Self::Tier => offset_of!(ArenaRecord, tier),
        }
    }

    const fn of_mapping(self) -> usize {
        match self {
            Self::Wanted => offset_of!(MappingRecord, wanted_tier),
            Self::Tier => offset_of!(MappingRecord, tier),
        }
    }
}

impl SessionFile {
    /// Requests a tier for a site's data. True if the site has a record for the request: an arena of its own, or a
    /// mapping.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn request_tier(
        &mut self,
        site: SiteId,
        tier: u32,
        word: RequestWord,
    ) -> Result<bool, SessionError> {
        if site == SiteId::SHARED {
            return self.request_of_arena(SHARED_ARENA, tier, word);
        }
        let progress = self.progress()?;
        self.learn_sites(&progress)?;
        let Some(&number) = self.site_numbers.get(&site) else {
            return Ok(false);
        };
        let found = match self.arena_of(number)? {
            SHARED_ARENA => false,
            arena => self.request_of_arena(arena, tier, word)?,
        };
        Ok(self.request_of_mappings(number, &progress, tier, word)? || found)
    }

    /// Reads the names of the sites that are new since the last call.
    fn learn_sites(&mut self, progress: &Progress) -> Result<(), SessionError> {
        let from = self.site_numbers_read;
        let mut names = Vec::new();
        let table = self.header.sites;
        self.read_records(table, from, progress.sites, |_, record: SiteRecord| {
            names.push(SiteId(record.hash.into_inner()));
        })?;
        // The rest is read again once the runtime has named the first incomplete one.
        let complete = names
            .into_iter()
            .take_while(|id| *id != SiteId::UNATTRIBUTED);
        for id in complete {
            self.site_numbers.insert(id, self.site_numbers_read);
            self.site_numbers_read += 1;
        }
        Ok(())
    }

    fn arena_of(&self, site: u64) -> Result<u32, SessionError> {
        let mut arena = SHARED_ARENA;
        let table = self.header.sites;
        self.read_records(table, site, site + 1, |_, record: SiteRecord| {
            arena = record.arena.into_inner();
        })?;
        Ok(arena)
    }

    fn request_of_arena(
        &self,
        arena: u32,
        tier: u32,
        word: RequestWord,
    ) -> Result<bool, SessionError> {
        self.write_word(self.header.arenas, arena.into(), word.of_arena(), tier)
    }

    fn request_of_mappings(
        &self,
        site: u64,
        progress: &Progress,
        tier: u32,
        request: RequestWord,
    ) -> Result<bool, SessionError> {
        let table = self.header.mappings;
        let mut of_site = Vec::new();
        let end = progress.mappings;
        self.read_records(table, 0, end, |number, record: MappingRecord| {
            let owner = record.site.into_inner();
            if u64::from(owner) == site && record.bytes.into_inner() > 0 {
                of_site.push(number);
            }
        })?;
        for &number in &of_site {
            self.write_word(table, number, request.of_mapping(), tier)?;
        }
        Ok(!of_site.is_empty())
    }

    /// Writes a word of a record; false if the table has no such record. Tables are behind the header and within the
    /// file, so that no request changes the header. The word is read first: a write into a file that was cut short
    /// would extend it.
    fn write_word(
        &self,
        table: Table,
        number: u64,
        offset: usize,
        value: u32,
    ) -> Result<bool, SessionError> {
        if number >= table.slots {
            return Ok(false);
        }
        let at = table.offset + number * table.record_bytes as u64 + offset as u64;
        self.file.read_exact_at(&mut [0; 4], at)?;
        self.write(at, &value)?;
        Ok(true)
    }
}
