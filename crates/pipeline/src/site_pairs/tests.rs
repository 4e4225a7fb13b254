//! Tests the pairs of sites of two profiles with frames of invented builds.

use super::{module_name, site_pairs};
use isotherm_model::calls::MatchedBy;
use isotherm_model::profile::{Meta, Profile};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use proptest::prelude::*;

/// A caller of a build: function, line, offset.
fn frame(build: &str, (function, line, offset): (&str, u32, u64)) -> Frame {
    Frame {
        module: format!("/home/me/{build}/app").into(),
        build_id: Some(build.into()),
        offset,
        function: Some(function.to_owned()),
        file: Some(format!("/home/me/{build}/src/app.c")),
        line: Some(line),
        function_line: Some(1),
        ..Frame::default()
    }
}

fn site(id: u64, build: &str, callers: &[(&str, u32, u64)]) -> Site {
    let frames = callers.iter().map(|caller| frame(build, *caller));
    Site {
        frames: frames.collect(),
        ..Site::new(SiteId(id), SiteKind::Heap)
    }
}

fn profile(build: &str, depth: u32, sites: Vec<Site>) -> Profile {
    let mut profile = Profile::new(Meta {
        command: vec![format!("/home/me/{build}/app")],
        depth,
        ..Meta::default()
    });
    profile.sites = sites;
    profile
}

/// The pairs as numbers of sites.
fn pairs(before: &Profile, after: &Profile) -> Vec<(Vec<u64>, Vec<u64>, Option<MatchedBy>)> {
    let ids = |sites: Vec<SiteId>| sites.into_iter().map(|site| site.0).collect();
    let pairs = site_pairs(before, after).into_iter();
    pairs
        .map(|pair| (ids(pair.before), ids(pair.after), pair.by))
        .collect()
}

#[test]
fn the_same_build_is_known_by_name_and_what_is_gone_or_new_stays_alone() {
    let main = ("main", 30, 0x90);
    let sites = |ids: &[u64]| -> Vec<Site> {
        let site = |id: &u64| site(*id, "v1", &[("load", 10 + *id as u32, *id), main]);
        ids.iter().map(site).collect()
    };
    let before = profile("v1", 4, sites(&[5, 6]));
    let after = profile("v1", 4, sites(&[6, 7]));
    let by_name = Some(MatchedBy::Name);
    let wanted = [
        (vec![5], vec![], None),
        (vec![6], vec![6], by_name),
        (vec![], vec![7], None),
    ];
    assert_eq!(pairs(&before, &after), wanted);
}

#[test]
fn another_build_is_matched_by_functions_and_lines_and_not_by_addresses() {
    let before = profile(
        "v1",
        4,
        vec![
            site(5, "v1", &[("load", 10, 0x10), ("main", 30, 0x90)]),
            site(6, "v1", &[("load", 12, 0x20), ("main", 30, 0x90)]),
            site(7, "v1", &[("init", 40, 0x50)]),
        ],
    );
    // `save` is new, and has the offset that `load` had.
    let after = profile(
        "v2",
        4,
        vec![
            site(15, "v2", &[("load", 10, 0x18), ("main", 30, 0x98)]),
            site(16, "v2", &[("load", 12, 0x28), ("main", 30, 0x98)]),
            site(18, "v2", &[("save", 50, 0x10), ("main", 30, 0x98)]),
        ],
    );
    let by_line = Some(MatchedBy::Line);
    let wanted = [
        (vec![5], vec![15], by_line),
        (vec![6], vec![16], by_line),
        (vec![7], vec![], None),
        (vec![], vec![18], None),
    ];
    assert_eq!(pairs(&before, &after), wanted);
}

#[test]
fn the_only_call_of_a_function_without_lines_is_as_good_as_its_line() {
    let start = |build: &str, id, offset| {
        let mut site = site(
            id,
            build,
            &[("main", 30, offset), ("_start", 0, offset + 8)],
        );
        let mut frames = site.frames.to_vec();
        (frames[1].line, frames[1].file, frames[1].function_line) = (None, None, None);
        site.frames = frames.into();
        site
    };
    let before = profile("v1", 4, vec![start("v1", 5, 0x10)]);
    let after = profile("v2", 4, vec![start("v2", 15, 0x20)]);
    let wanted = [(vec![5], vec![15], Some(MatchedBy::Line))];
    assert_eq!(pairs(&before, &after), wanted);
}

#[test]
fn copies_that_a_compiler_made_of_one_call_are_one_pair() {
    let before = profile("v1", 4, vec![site(5, "v1", &[("load", 10, 0x10)])]);
    let copies = vec![
        site(15, "v2", &[("load", 10, 0x18)]),
        site(16, "v2", &[("load", 10, 0x28)]),
    ];
    let after = profile("v2", 4, copies);
    let wanted = [(vec![5], vec![15, 16], Some(MatchedBy::Line))];
    assert_eq!(pairs(&before, &after), wanted);
}

#[test]
fn profiles_of_different_depths_are_compared_at_the_smaller_one() {
    let deep = |id, caller| site(id, "v1", &[("array", 5, 0x10), caller]);
    let before = profile(
        "v1",
        4,
        vec![deep(5, ("hot", 20, 0x60)), deep(6, ("cold", 25, 0x70))],
    );
    let after = profile("v1", 1, vec![site(9, "v1", &[("array", 5, 0x10)])]);
    let wanted = [(vec![5, 6], vec![9], Some(MatchedBy::Name))];
    assert_eq!(pairs(&before, &after), wanted);
}

#[test]
fn variables_are_found_by_their_names_and_a_name_of_two_is_not_guessed() {
    let variable = |id, build: &str, name: &str| Site {
        kind: SiteKind::Static,
        ..site(id, build, &[(name, 0, id)])
    };
    let before = profile(
        "v1",
        4,
        vec![variable(5, "v1", "table"), variable(6, "v1", "buffer")],
    );
    let after = profile(
        "v2",
        4,
        vec![
            variable(15, "v2", "table"),
            variable(16, "v2", "buffer"),
            variable(17, "v2", "buffer"),
        ],
    );
    let found = pairs(&before, &after);
    assert_eq!(found[0], (vec![5], vec![15], Some(MatchedBy::Variable)));
    assert_eq!(found[1], (vec![6], vec![], None));
    assert_eq!(found.len(), 4);
}

#[test]
fn a_stripped_program_of_another_build_is_not_guessed_at() {
    let nameless = |id, build| {
        let mut site = site(id, build, &[("f", 1, 0x10)]);
        let frames = site.frames.iter().cloned().map(|frame| Frame {
            function: None,
            file: None,
            line: None,
            ..frame
        });
        site.frames = frames.collect();
        site
    };
    let before = profile("v1", 4, vec![nameless(5, "v1")]);
    let after = profile("v2", 4, vec![nameless(15, "v2")]);
    let wanted = [(vec![5], vec![], None), (vec![], vec![15], None)];
    assert_eq!(pairs(&before, &after), wanted);
}

#[test]
fn modules_keep_their_names_over_versions_and_the_program_over_file_names() {
    for (path, name) in [
        ("/usr/lib/libstdc++.so.6.0.30", "libstdc++"),
        ("/opt/libfoo.so", "libfoo"),
        ("/opt/x.so.conf", "x.so.conf"),
        ("/home/me/app-2", ""),
        ("/bin/sh", "sh"),
    ] {
        assert_eq!(&*module_name(path, "app-2"), name, "{path}");
    }
}

proptest! {
    #[test]
    fn every_site_is_in_one_pair(
        before in prop::collection::btree_map(2_u64..40, (0_u32..4, 0_u32..3), 0..12),
        after in prop::collection::btree_map(2_u64..40, (0_u32..4, 0_u32..3), 0..12),
        is_same_build in any::<bool>(),
    ) {
        let functions = ["load", "save", "init"];
        let sites = |build: &str, made: std::collections::BTreeMap<u64, (u32, u32)>| {
            let sites = made.into_iter().map(|(id, (line, function))| {
                site(id, build, &[(functions[function as usize], line, id * 8), ("main", 9, 4)])
            });
            profile(build, 4, sites.collect())
        };
        let before = sites("v1", before);
        let after = sites(if is_same_build { "v1" } else { "v2" }, after);
        let pairs = pairs(&before, &after);
        let sorted = |mut ids: Vec<u64>| { ids.sort_unstable(); ids };
        let ids = |profile: &Profile| profile.sites.iter().map(|site| site.id.0).collect::<Vec<_>>();
        prop_assert_eq!(sorted(pairs.iter().flat_map(|pair| pair.0.clone()).collect()), ids(&before));
        prop_assert_eq!(sorted(pairs.iter().flat_map(|pair| pair.1.clone()).collect()), ids(&after));
        for (before, after, by) in pairs {
            prop_assert!(!before.is_empty() || !after.is_empty());
            prop_assert_eq!(by.is_some(), !before.is_empty() && !after.is_empty());
        }
    }
}
