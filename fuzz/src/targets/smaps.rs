//! The text of `/proc/pid/smaps`, and what is made of it.

use isotherm_observe::accessed::{Vma, parse_smaps, spread};

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

/// Spreads the pages of a mapping over nothing, and over two extents of which one reaches beyond
/// it. Mappings beyond what a processor can address would take as long as they have chunks.
fn no_page_is_lost(vma: Vma) {
    const LARGEST: u64 = 1 << 40;
    let size = (vma.end - vma.start).min(LARGEST);
    let vma = Vma {
        end: vma.start + size,
        referenced_bytes: vma.referenced_bytes.min(size),
        ..vma
    };
    let middle = vma.start + size / 2;
    let extents = [
        vma.start..vma.start + size / 4,
        middle..vma.end.saturating_add(PAGE),
    ];
    for extents in [&extents[..], &[]] {
        let mut pages = 0;
        spread(vma, extents, PAGE, |address, found| {
            assert!((vma.start..vma.end).contains(&address));
            pages += found;
        });
        assert_eq!(pages, vma.referenced_bytes / PAGE);
    }
}
