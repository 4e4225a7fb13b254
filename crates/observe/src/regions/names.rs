//! `RegionNames` gives each mapping of a process a name and a site, the same in every run with the same mappings: a mapping of a file is
//! named by its path, an anonymous one by its size, and a second one of the same size by its number, too. An anonymous mapping keeps its
//! name as it grows or shrinks. Stacks share a name, as do small anonymous mappings; small ones of files have none.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isotherm_abi::hash::{SiteHashKind, SiteHasher};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::Bytes;
use isotherm_symbols::static_data::LEAST_BYTES;
use isotherm_sys::memory_map::MappedRange;

use super::region::Region;

/// The stacks of all threads.
const STACKS: &str = "thread stacks";
/// Anonymous mappings that are too small for a site of their own.
const SMALL: &str = "small anonymous mappings";
/// Anonymous mappings beyond [`ANONYMOUS_AT_MOST`].
const OTHERS: &str = "other anonymous mappings";

/// Most sites of anonymous mappings without a name.
const ANONYMOUS_AT_MOST: usize = 1024;

/// Largest mapping that counts as a stack because a stack pointer is in it: the stacks of coroutines can be in the heap of a language's
/// runtime.
const STACK_AT_MOST: u64 = 32 << 20;

/// The sites that were named.
#[derive(Debug, Default)]
pub(super) struct RegionNames {
    labels: BTreeMap<SiteId, String>,
    /// The sites of anonymous mappings without a name.
    anonymous: BTreeSet<SiteId>,
}

impl RegionNames {
    /// The regions of these mappings, by address. An anonymous mapping keeps the name of the region that was in its place, which may
    /// have shrunk or grown; `before` are the former regions, by address.
    pub(super) fn regions<'a>(
        &mut self,
        mappings: &[MappedRange<'_>],
        stacks: &[u64],
        before: impl Iterator<Item = &'a Region>,
    ) -> Vec<Region> {
        let stack = self.label(STACKS);
        let lasts =
            |region: &&Region| region.site == stack || self.anonymous.contains(&region.site);
        let former: Vec<&Region> = before.filter(lasts).collect();
        let mut used = BTreeSet::new();
        // Former names first, so that a new mapping does not get one that is in use.
        let kept: Vec<Option<SiteId>> = mappings
            .iter()
            .map(|mapping| {
                let site = former_name(mapping, &former);
                let site = site.filter(|site| *site == stack || !used.contains(site));
                used.extend(site);
                site
            })
            .collect();
        let mut regions: Vec<Region> = Vec::new();
        let (mut end, mut data_of) = (0, None);
        for (mapping, kept) in mappings.iter().zip(kept) {
            let range = &mapping.range;
            if range.start < end || !is_memory(mapping) {
                continue;
            }
            // Static data without a value in the file follows that with one.
            let of_file = data_of.filter(|_| end == range.start && is_unnamed(mapping));
            let is_stack = is_unnamed(mapping)
                && range.end - range.start <= STACK_AT_MOST
                && stacks.iter().any(|stack| range.contains(stack));
            end = range.end;
            data_of = (mapping.inode > 0 && mapping.is_writable).then_some(mapping);
            let site = match (is_stack, kept, of_file) {
                (true, ..) => Some(stack),
                (false, Some(site), _) => Some(site),
                (false, None, Some(file)) => self.name(file.name, range, &mut used),
                (false, None, None) => self.name(mapping.name, range, &mut used),
            };
            let Some(site) = site else { continue };
            regions.push(Region {
                span: range.clone(),
                site,
                is_object: mapping.inode > 0 || of_file.is_some() || self.anonymous.contains(&site),
            });
        }
        regions
    }

    /// The site with this id, if it was named here.
    pub(super) fn site(&self, site: SiteId) -> Option<Site> {
        let label = self.labels.get(&site)?;
        Some(Site {
            frames: [Frame {
                function: Some(label.clone()),
                ..Frame::default()
            }]
            .into(),
            ..Site::new(site, SiteKind::Region)
        })
    }

    /// The site of a mapping with this name that had no former one; `None` for a mapping of a file that is too small.
    fn name(
        &mut self,
        name: &[u8],
        range: &Range<u64>,
        used: &mut BTreeSet<SiteId>,
    ) -> Option<SiteId> {
        let bytes = range.end - range.start;
        match String::from_utf8_lossy(name).as_ref() {
            "" if bytes < LEAST_BYTES => Some(self.label(SMALL)),
            "" => Some(self.anonymous(bytes, used)),
            "[stack]" => Some(self.label(STACKS)),
            name if name.starts_with('[') => Some(self.label(name)),
            _ if bytes < LEAST_BYTES => None,
            path => {
                let path = path.strip_suffix(" (deleted)").unwrap_or(path);
                Some(self.label(&format!("file {path}")))
            }
        }
    }

    /// The first site of anonymous mappings of this size that no other mapping has.
    fn anonymous(&mut self, bytes: u64, used: &mut BTreeSet<SiteId>) -> SiteId {
        let size = Bytes(bytes).exact();
        for number in 1..=ANONYMOUS_AT_MOST {
            let number = match number {
                1 => String::new(),
                number => format!(" ({number})"),
            };
            let label = format!("anonymous {size}{number}");
            let site = site_of(&label);
            let is_free = !used.contains(&site);
            let has_room = self.anonymous.len() < ANONYMOUS_AT_MOST;
            if is_free && (has_room || self.anonymous.contains(&site)) {
                used.insert(site);
                self.anonymous.insert(site);
                return self.label(&label);
            }
            if is_free {
                break;
            }
        }
        self.label(OTHERS)
    }

    fn label(&mut self, label: &str) -> SiteId {
        let site = site_of(label);
        let labels = self.labels.entry(site);
        labels.or_insert_with(|| label.to_owned());
        site
    }
}

/// The id of a region. No module of a mapping's site is called so.
fn site_of(label: &str) -> SiteId {
    let hasher = SiteHasher::new(SiteHashKind::Mapping).frame(label.as_bytes(), 0);
    SiteId(hasher.finish())
}

/// True for memory that a program can use: what is only reserved has no pages.
fn is_memory(mapping: &MappedRange<'_>) -> bool {
    let is_usable = mapping.is_readable || mapping.is_writable || mapping.is_executable;
    is_usable && !mapping.is_of_kernel()
}

fn is_unnamed(mapping: &MappedRange<'_>) -> bool {
    mapping.inode == 0 && mapping.name.is_empty()
}

/// The name of the first region that was in the place of an anonymous mapping; `former` are the earlier regions, by address.
fn former_name(mapping: &MappedRange<'_>, former: &[&Region]) -> Option<SiteId> {
    if !is_unnamed(mapping) {
        return None;
    }
    let next = former.partition_point(|region| region.span.end <= mapping.range.start);
    let region = former.get(next)?;
    (region.span.start < mapping.range.end).then_some(region.site)
}
