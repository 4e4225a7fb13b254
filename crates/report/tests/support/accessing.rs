//! Adds code that accesses the data to the sites of a profile.

use isotherm_model::code_access::{AccessKind, CodeAccess, SampleWalk};
use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, SiteId};
use isotherm_model::units::{Accesses, Bytes};

/// Function, line, offset, kind, share of the site's accesses in percent, pairs that continue of 100, divisor.
type Made = (&'static str, Option<u32>, u64, AccessKind, u64, u64, u64);

/// Each site of the profile is accessed by three instructions of two lines and by a library.
pub(crate) fn add(profile: &mut Profile) {
    const MADE: [Made; 4] = [
        (
            "visit(Graph const&, unsigned)",
            Some(311),
            0x4100,
            AccessKind::Load,
            55,
            30,
            8,
        ),
        (
            "visit(Graph const&, unsigned)",
            Some(311),
            0x4108,
            AccessKind::Store,
            20,
            30,
            8,
        ),
        (
            "pagerank(Graph const&, int)",
            Some(340),
            0x4200,
            AccessKind::Load,
            15,
            95,
            4096,
        ),
        ("", None, 0x9010, AccessKind::Both, 5, 99, 8),
    ];
    let accesses = profile.accesses_by_site();
    for (site, accesses) in accesses.iter().filter(|(site, _)| **site > SiteId::SHARED) {
        for (function, line, offset, kind, percent, continued, divisor) in MADE {
            let frame = Frame {
                module: match line {
                    Some(_) => "/home/user/graphs/bin/bfs".into(),
                    None => "/usr/lib/libc.so.6".into(),
                },
                offset,
                function: line.map(|_| function.to_owned()),
                file: line.map(|_| "/home/user/graphs/src/graph.cc".to_owned()),
                line,
                ..Frame::default()
            };
            profile.code.push(CodeAccess {
                site: *site,
                code: frame.into(),
                kind: Some(kind),
                accesses: Accesses(accesses.0 * percent / 100),
                streamed: Accesses::ZERO,
                served: Accesses(7),
                threads: 4,
                walk: SampleWalk {
                    pairs: 101,
                    continued,
                    divisor: Bytes(divisor),
                },
            });
        }
    }
}
