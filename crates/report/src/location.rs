//! Where a site is, in words that tell it from all others.

use std::collections::BTreeMap;

use isotherm_model::site::{Frame, Site, SiteKind};

/// The caller that says most to the program's author: not the container of the standard library
/// that asked for the memory, but the line that asked the container.
fn telling(site: &Site) -> Option<usize> {
    let own = |frame: &Frame| {
        let file = frame.file.as_deref();
        file.is_some_and(|file| !file.starts_with("/usr/") && !file.contains("/rustlib/"))
    };
    let frames = &site.frames;
    let position = |wanted: &dyn Fn(&Frame) -> bool| frames.iter().position(wanted);
    position(&own)
        .or_else(|| position(&|frame| frame.file.is_some()))
        .or_else(|| position(&|frame| frame.function.is_some()))
        .or_else(|| (!frames.is_empty()).then_some(0))
}

/// `graph.cc:88 load_graph: edges`, with the column where asked for.
fn shown(site: &Site, with_column: bool) -> String {
    let Some(frame) = telling(site).map(|at| &site.frames[at]) else {
        return match site.kind {
            SiteKind::Shared => site.label(),
            _ => site.id.to_string(),
        };
    };
    match (&frame.file, frame.line, &frame.function) {
        // The line comes first: it tells sites apart where a long name is cut.
        (Some(file), Some(line), Some(function)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            let column = frame.column.filter(|_| with_column);
            let column = column.map_or(String::new(), |column| format!(":{column}"));
            let variable = frame.variable.as_ref();
            let variable = variable.map_or(String::new(), |name| format!(": {name}"));
            format!("{file}:{line}{column} {function}{variable}")
        }
        _ => frame.to_string(),
    }
}

/// One text for each site. Sites of one place are told apart by the column, then by the first caller around it in which
/// they differ, then by their names.
pub(crate) fn locations(sites: &[Site]) -> Vec<String> {
    let mut texts: Vec<String> = sites.iter().map(|site| shown(site, false)).collect();
    for group in alike(&texts) {
        for at in group {
            texts[at] = shown(&sites[at], true);
        }
    }
    for group in alike(&texts) {
        for (at, caller) in group.iter().zip(differing(sites, &group)) {
            if let Some(caller) = caller {
                texts[*at] += &format!(" < {caller}");
            }
        }
    }
    for group in alike(&texts) {
        for at in group {
            let name = sites[at].id.to_string();
            texts[at] += &format!(" #{}", name.get(..8).unwrap_or(&name));
        }
    }
    texts
}

/// Positions of texts that are there more than once.
fn alike(texts: &[String]) -> Vec<Vec<usize>> {
    let mut places = BTreeMap::<&str, Vec<usize>>::new();
    for (at, text) in texts.iter().enumerate() {
        places.entry(text).or_default().push(at);
    }
    places
        .into_values()
        .filter(|group| group.len() > 1)
        .collect()
}

/// The outer caller of each site of a group, at the first depth where not all are the same.
fn differing(sites: &[Site], group: &[usize]) -> Vec<Option<String>> {
    let outer = |at: usize, depth: usize| {
        let site = &sites[at];
        let first = telling(site).map_or(0, |telling| telling + 1);
        site.frames.get(first + depth).map(ToString::to_string)
    };
    let deepest = group.iter().map(|at| sites[*at].frames.len()).max();
    let callers = |depth| group.iter().map(|at| outer(*at, depth)).collect::<Vec<_>>();
    (0..deepest.unwrap_or(0))
        .map(callers)
        .find(|callers| callers.iter().any(|caller| *caller != callers[0]))
        .unwrap_or_else(|| vec![None; group.len()])
}

#[cfg(test)]
mod tests {
    use super::locations;
    use isotherm_model::site::{Frame, Site, SiteId, SiteKind};

    fn frame(file: &str, function: &str, column: u32, variable: Option<&str>) -> Frame {
        Frame {
            file: Some(file.into()),
            function: Some(function.into()),
            line: Some(3),
            column: Some(column),
            variable: variable.map(str::to_owned),
            ..Frame::default()
        }
    }

    fn site(id: u64, frames: Vec<Frame>) -> Site {
        Site {
            frames: frames.into(),
            ..Site::new(SiteId(id << 60), SiteKind::Heap)
        }
    }

    #[test]
    fn the_location_is_the_authors_line_rather_than_the_containers() {
        let none = site(0, Vec::new());
        let frames = vec![
            frame(
                "/usr/include/c++/12/bits/new_allocator.h",
                "allocate",
                1,
                None,
            ),
            frame("/home/me/bfs.cc", "load_graph", 9, Some("edges")),
            frame("/home/me/bfs.cc", "main", 1, None),
        ];
        let wanted = ["unattributed", "bfs.cc:3 load_graph: edges"];
        assert_eq!(locations(&[none, site(9, frames)]), wanted);
    }

    #[test]
    fn no_two_sites_look_the_same() {
        let alone = |id, column| site(id, vec![frame("cg.c", "main", column, None)]);
        let through = |id, caller: &str| {
            let outer = frame("cg.c", caller, 1, None);
            site(id, vec![frame("cg.c", "array", 5, None), outer])
        };
        let sites = [
            alone(1, 7),
            alone(2, 9),
            through(3, "hot"),
            through(4, "cold"),
            alone(5, 9),
        ];
        let wanted = [
            "cg.c:3:7 main",
            "cg.c:3:9 main #20000000",
            "cg.c:3:5 array < hot (cg.c:3)",
            "cg.c:3:5 array < cold (cg.c:3)",
            "cg.c:3:9 main #50000000",
        ];
        assert_eq!(locations(&sites), wanted);
        let named = |id, variable| site(id, vec![frame("cg.c", "main", 7, Some(variable))]);
        let wanted = ["cg.c:3 main: a", "cg.c:3 main: b"];
        assert_eq!(locations(&[named(1, "a"), named(2, "b")]), wanted);
    }
}
