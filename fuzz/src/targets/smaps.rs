//! The text of `/proc/pid/smaps`, and what is made of it.

use isotherm_model::batch::{Batch, Extent, ObservedAccess, Process};
use isotherm_model::profile::Meta;
use isotherm_model::site::SiteId;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Bytes;
use isotherm_observe::source::mapping_bits::{Vma, parse_smaps};
use isotherm_pipeline::Attribution;

const PAGE: u64 = 4096;

pub(crate) fn check(data: &[u8]) -> bool {
    let mut vmas = Vec::new();
    let read = parse_smaps(data, |vma| vmas.push(vma));
    assert!(read.is_ok(), "bytes in memory can be read");
    for vma in &vmas {
        assert!(vma.start < vma.end && vma.referenced_bytes <= vma.end - vma.start);
        no_page_is_lost(*vma);
    }
    !vmas.is_empty()
}

/// Attributes the pages of a mapping to nothing, and to two extents of which one reaches beyond
/// it. Mappings beyond what a processor can address would take as long as they have chunks.
fn no_page_is_lost(vma: Vma) {
    const LARGEST: u64 = 1 << 40;
    let size = (vma.end - vma.start).min(LARGEST);
    let pages = vma.referenced_bytes.min(size) / PAGE;
    let process = Process::default();
    let extent = |site, address, bytes| Extent {
        process,
        site: SiteId(site),
        address,
        bytes: Bytes(bytes),
        resident: Bytes::ZERO,
        tier: None,
    };
    let middle = vma.start + size / 2;
    let second = (size / 2).saturating_add(PAGE).min(u64::MAX - middle);
    let extents = [extent(7, vma.start, size / 4), extent(8, middle, second)];
    let source = SourceKind::AccessedBits;
    let access = ObservedAccess {
        bytes: Bytes(size),
        ..ObservedAccess::at((process, vma.start), source, (pages, source.unit(false)))
    };
    for extents in [&extents[..], &[]] {
        let batch = Batch {
            extents: extents.to_vec(),
            accesses: vec![access],
            ..Batch::default()
        };
        let meta = Meta {
            chunk: Bytes(2 << 20),
            ..Meta::default()
        };
        let heat = Attribution::new(&meta).attribute(&batch).heat;
        assert!(heat.iter().all(|heat| heat.address < vma.start + size));
        assert_eq!(heat.iter().map(|heat| heat.accesses.0).sum::<u64>(), pages);
    }
}
