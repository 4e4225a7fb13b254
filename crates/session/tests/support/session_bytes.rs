//! Session files written by hand, in the runtime's format, for tests.

use std::mem::{offset_of, size_of};
use std::path::Path;

use isotherm_abi::accesses::{AccessTable, REGION_COUNT_BYTES};
use isotherm_abi::interface::OutcomeTable;
use isotherm_abi::page_tiers::{CHUNK_PAGES, PageTable, StaticPageTable};
use isotherm_abi::python_code::PythonCode;
use isotherm_abi::session::{
    ArenaRecord, CHUNK_MAPPING, FrameRecord, MAGIC, MappingRecord, ModuleRecord, NO_TIER,
    ObjectRecord, ObjectRing, PYTHON_FRAME, SessionCounter, SessionHeader, SessionLayout,
    SessionState, SiteRecord, TouchRecord, TouchRing,
};
use isotherm_abi::{CHUNK_BYTES, VERSION};

/// Address of the pool in these files.
pub(crate) const POOL: u64 = 0x2000_0000_0000;

/// Chunks of the pool.
pub(crate) const CHUNKS: u64 = 64;

/// Pages of static data that have a tier in these files.
const STATIC_PAGES: u64 = 4096;

/// The layout of these files.
const LAYOUT: SessionLayout = SessionLayout {
    module_slots: 4,
    site_slots: 8,
    arena_slots: 8,
    mapping_slots: 8,
    touch_slots: 16,
    text_slots: 4096,
    chunk_slots: CHUNKS,
    region_slots: 4,
    page_slots: CHUNKS * CHUNK_PAGES,
    static_page_slots: STATIC_PAGES,
    outcome_slots: 4,
    object_slots: 8,
};

/// The bytes of a session file in the making.
pub(crate) struct SessionBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) layout: SessionLayout,
}

macro_rules! put {
    ($file:expr, $base:expr, $record:ty, $field:ident, $value:expr) => {
        $file.put(
            $base + offset_of!($record, $field) as u64,
            &$value.to_ne_bytes(),
        )
    };
}

impl SessionBytes {
    /// A file of a process that has just started.
    pub(crate) fn new(pid: u32, parent: u32, start_ns: u64) -> Self {
        let layout = LAYOUT;
        let [
            modules,
            sites,
            arenas,
            chunks,
            mappings,
            touches,
            text,
            objects,
            regions,
            counts,
            pages,
            statics,
            outcomes,
            requests,
            end,
        ] = layout.offsets();
        let mut file = Self {
            bytes: vec![0; end as usize],
            layout,
        };
        file.put(0, &MAGIC);
        put!(file, 0, SessionHeader, version, VERSION);
        let header_bytes = size_of::<SessionHeader>() as u32;
        put!(file, 0, SessionHeader, header_bytes, header_bytes);
        put!(file, 0, SessionHeader, pid, pid);
        put!(file, 0, SessionHeader, parent_pid, parent);
        put!(file, 0, SessionHeader, depth, 4u32);
        put!(
            file,
            0,
            SessionHeader,
            state,
            (SessionState::Running as u32)
        );
        put!(file, 0, SessionHeader, start_ns, start_ns);
        put!(file, 0, SessionHeader, pool_base, POOL);
        put!(file, 0, SessionHeader, pool_bytes, (CHUNKS * CHUNK_BYTES));
        put!(file, 0, SessionHeader, module_slots, layout.module_slots);
        put!(file, 0, SessionHeader, site_slots, layout.site_slots);
        put!(file, 0, SessionHeader, arena_slots, layout.arena_slots);
        put!(file, 0, SessionHeader, mapping_slots, layout.mapping_slots);
        put!(file, 0, SessionHeader, text_slots, layout.text_slots);
        put!(file, 0, SessionHeader, modules_offset, modules);
        put!(file, 0, SessionHeader, sites_offset, sites);
        put!(file, 0, SessionHeader, arenas_offset, arenas);
        put!(file, 0, SessionHeader, chunks_offset, chunks);
        put!(file, 0, SessionHeader, mappings_offset, mappings);
        put!(file, 0, SessionHeader, touches_offset, touches);
        put!(file, 0, SessionHeader, text_offset, text);
        let slots = offset_of!(SessionHeader, touches) + offset_of!(TouchRing, slots);
        file.put(slots as u64, &layout.touch_slots.to_ne_bytes());
        file.object_ring(objects);
        file.access_table(regions, counts);
        file.page_tables(pages, requests);
        file.static_pages(statics);
        let table = offset_of!(SessionHeader, outcomes) as u64;
        put!(file, table, OutcomeTable, slots, layout.outcome_slots);
        put!(file, table, OutcomeTable, offset, outcomes);
        file
    }

    /// The table of access counts, with the offsets of its regions and of their counts.
    fn access_table(&mut self, regions: u64, counts: u64) {
        let accesses = offset_of!(SessionHeader, accesses) as u64;
        put!(self, accesses, AccessTable, period, 8u64);
        let region_slots = u64::from(self.layout.region_slots);
        put!(self, accesses, AccessTable, slots, region_slots);
        put!(self, accesses, AccessTable, regions_offset, regions);
        put!(self, accesses, AccessTable, counts_offset, counts);
    }

    /// The ring of large allocations at this offset.
    fn object_ring(&mut self, offset: u64) {
        let ring = offset_of!(SessionHeader, objects) as u64;
        let slots = self.layout.object_slots;
        put!(self, ring, ObjectRing, slots, slots);
        put!(self, ring, ObjectRing, offset, offset);
    }

    /// The tables of pages, with the offsets of the tiers and of the requests.
    fn page_tables(&mut self, tiers: u64, requests: u64) {
        let layout = self.layout;
        let table = offset_of!(SessionHeader, pages) as u64;
        put!(self, table, PageTable, slots, layout.page_slots);
        put!(self, table, PageTable, tiers_offset, tiers);
        let slots = layout.request_slots();
        put!(self, table, PageTable, request_slots, slots);
        put!(self, table, PageTable, requests_offset, requests);
    }

    /// The table of static data's tiers at this offset.
    fn static_pages(&mut self, tiers: u64) {
        let table = offset_of!(SessionHeader, statics) as u64;
        let slots = self.layout.static_page_slots;
        put!(self, table, StaticPageTable, slots, slots);
        put!(self, table, StaticPageTable, tiers_offset, tiers);
    }

    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) {
        let offset = offset as usize;
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Module `number` with a path and a build-id.
    pub(crate) fn module(&mut self, number: u32, path: &str, build_id: &[u8]) {
        let [modules, _, _, _, _, _, text, ..] = self.layout.offsets();
        let at = modules + u64::from(number) * size_of::<ModuleRecord>() as u64;
        self.put(at + offset_of!(ModuleRecord, build_id) as u64, build_id);
        put!(
            self,
            at,
            ModuleRecord,
            build_id_bytes,
            (build_id.len() as u32)
        );
        put!(self, at, ModuleRecord, has_build_id, 1u32);
        put!(self, at, ModuleRecord, path_offset, (number * 512));
        put!(self, at, ModuleRecord, path_bytes, (path.len() as u32));
        self.put(text + u64::from(number) * 512, path.as_bytes());
        put!(self, 0, SessionHeader, module_count, (number + 1));
    }

    /// A Python function at a place of the text area, behind the paths of modules.
    pub(crate) fn python_code(&mut self, place: u32, code: &PythonCode<'_>) {
        let [_, _, _, _, _, _, text, ..] = self.layout.offsets();
        let header = code.header().expect("short names");
        let bytes = [&header, code.file, code.function].concat();
        self.put(text + u64::from(place), &bytes);
        let end = place + bytes.len() as u32;
        put!(self, 0, SessionHeader, text_bytes, end);
    }

    /// Makes frame `depth` of site `number` one of a Python function.
    pub(crate) fn python_frame(&mut self, number: u32, depth: u64, (place, offset): (u32, u64)) {
        let site = self.layout.offsets()[1] + u64::from(number) * size_of::<SiteRecord>() as u64;
        let frame =
            site + offset_of!(SiteRecord, frames) as u64 + depth * size_of::<FrameRecord>() as u64;
        put!(self, frame, FrameRecord, module, PYTHON_FRAME);
        put!(self, frame, FrameRecord, text, place);
        put!(self, frame, FrameRecord, offset, offset);
    }

    /// Site `number` with frames (module, offset) and numbers.
    pub(crate) fn site(&mut self, number: u32, hash: u64, frames: &[(u32, u64)], allocations: u64) {
        let at = self.layout.offsets()[1] + u64::from(number) * size_of::<SiteRecord>() as u64;
        put!(self, at, SiteRecord, depth, (frames.len() as u32));
        for (i, (module, offset)) in (0..).zip(frames) {
            let frame =
                at + offset_of!(SiteRecord, frames) as u64 + i * size_of::<FrameRecord>() as u64;
            put!(self, frame, FrameRecord, module, *module);
            put!(self, frame, FrameRecord, offset, *offset);
        }
        put!(self, at, SiteRecord, allocations, allocations);
        put!(self, at, SiteRecord, requested_bytes, (allocations * 100));
        put!(self, at, SiteRecord, peak_bytes, 100u64);
        put!(self, at, SiteRecord, hash, hash);
        put!(self, 0, SessionHeader, site_count, (number + 1));
    }

    /// Arena `number`, of a site (None: the shared one).
    pub(crate) fn arena(&mut self, number: u32, site: Option<u32>, tier: Option<u32>) {
        let at = self.layout.offsets()[2] + u64::from(number) * size_of::<ArenaRecord>() as u64;
        put!(self, at, ArenaRecord, site, site.map_or(0, |site| site + 1));
        put!(self, at, ArenaRecord, tier, tier.unwrap_or(NO_TIER));
        if let Some(site) = site {
            let at = self.layout.offsets()[1] + u64::from(site) * size_of::<SiteRecord>() as u64;
            put!(self, at, SiteRecord, arena, number);
        }
        put!(self, 0, SessionHeader, arena_count, (number + 1));
    }

    /// Gives chunks to an arena, or frees them.
    pub(crate) fn chunks(&mut self, chunks: std::ops::Range<u64>, arena: Option<u32>) {
        let owner = arena.map_or(0, |arena| arena + 1);
        for chunk in chunks {
            let at = self.layout.offsets()[3] + 4 * chunk;
            self.put(at, &owner.to_ne_bytes());
        }
    }

    /// Mapping `number` of a site.
    pub(crate) fn mapping(
        &mut self,
        number: u32,
        site: u32,
        address: u64,
        bytes: u64,
        sequence: u32,
    ) {
        let at = self.layout.offsets()[4] + u64::from(number) * size_of::<MappingRecord>() as u64;
        put!(self, at, MappingRecord, sequence, sequence);
        put!(self, at, MappingRecord, site, site);
        put!(self, at, MappingRecord, address, address);
        put!(self, at, MappingRecord, bytes, bytes);
        put!(self, at, MappingRecord, tier, NO_TIER);
        put!(self, 0, SessionHeader, mapping_count, (number + 1));
        if (POOL..POOL + CHUNKS * CHUNK_BYTES).contains(&address) {
            let first = (address - POOL) / CHUNK_BYTES;
            for chunk in first..first + bytes.div_ceil(CHUNK_BYTES) {
                let at = self.layout.offsets()[3] + 4 * chunk;
                self.put(at, &CHUNK_MAPPING.to_ne_bytes());
            }
        }
    }

    /// Writes touches `from..to` into the ring; touch i is of page i at time i.
    pub(crate) fn touches(&mut self, from: u64, to: u64) {
        for i in from..to {
            let slot = i % self.layout.touch_slots;
            let at = self.layout.offsets()[5] + slot * size_of::<TouchRecord>() as u64;
            put!(self, at, TouchRecord, address, (i * 4096));
            put!(self, at, TouchRecord, time_ns, i);
        }
        let written = offset_of!(SessionHeader, touches) + offset_of!(TouchRing, written);
        self.put(written as u64, &to.to_ne_bytes());
    }

    /// Writes large allocations `from..to` of site 1 into the ring; allocation i is of i MiB from address i GiB on.
    pub(crate) fn objects(&mut self, from: u64, to: u64) {
        for i in from..to {
            let slot = i % self.layout.object_slots;
            let at = self.layout.offsets()[7] + slot * size_of::<ObjectRecord>() as u64;
            put!(self, at, ObjectRecord, number, (i + 1));
            put!(self, at, ObjectRecord, address, (i << 30));
            put!(self, at, ObjectRecord, bytes, (i << 20));
            put!(self, at, ObjectRecord, site, 1u32);
        }
        let written = offset_of!(SessionHeader, objects) + offset_of!(ObjectRing, written);
        self.put(written as u64, &to.to_ne_bytes());
    }

    /// Count of a page, in the region that owns this slot.
    pub(crate) fn access_count(&mut self, slot: u64, region: u64, page: u64, count: u64) {
        let [_, _, _, _, _, _, _, _, regions, counts, ..] = self.layout.offsets();
        self.put(regions + 8 * slot, &(region + 1).to_ne_bytes());
        let at = counts + slot * REGION_COUNT_BYTES + 8 * page;
        self.put(at, &count.to_ne_bytes());
    }

    pub(crate) fn counter(&mut self, counter: SessionCounter, value: u64) {
        let at = offset_of!(SessionHeader, counters) + 8 * counter as usize;
        self.put(at as u64, &value.to_ne_bytes());
    }

    pub(crate) fn save(&self, path: &Path) {
        std::fs::write(path, &self.bytes).expect("the session file is written");
    }
}
