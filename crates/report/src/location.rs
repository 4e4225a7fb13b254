//! [`Location`] names in a report the code that allocates a site: the innermost caller in the program's own source (else in a library's,
//! else the best known one) and, where sites share it, also the column, then an outer caller, then the beginning of the id. [`beside`] adds
//! locations to a table as its last column, cut to the room that is left, but still distinct.

use std::fmt;

use isotherm_model::site::{Frame, Site, SiteKind};

use crate::distinct_cuts::{self, make_distinct};
use crate::words::clip;

/// Characters of a module that are kept before its offset.
const MODULE: usize = 8;
/// Separates a place from the caller around it.
const AROUND: &str = " < ";
/// Parts of the paths of Python's own modules and of installed packages.
const PYTHON_PLATFORM: [&str; 3] = ["/lib/python3", "/site-packages/", "/dist-packages/"];
/// Folders of the sources of Java's own classes.
const JAVA_PLATFORM: [&str; 5] = ["java/", "javax/", "jdk/", "sun/", "com/sun/"];
/// A location of at most this number of characters has no room for a caller.
const CALLER: usize = 8;
/// Characters of a location at least.
const LOCATION: usize = 12;
/// Columns between a table and the locations beside it.
const GAP: usize = 2;

/// A caller in words, in parts, so that the module, which many sites share, can be cut before what distinguishes them.
///
/// ```text
/// front           module               back
/// zmalloc_usable  " (redis-server)"
///                 libfoo.so.6          +0x1234
/// bfs.cc:88 load
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CallerWords {
    front: String,
    module: String,
    back: String,
}

impl CallerWords {
    fn whole(text: String) -> Self {
        Self {
            front: text,
            ..Self::default()
        }
    }

    /// The words of a frame, as [`Frame`] prints it.
    fn of(frame: &Frame) -> Self {
        let whole = frame.to_string();
        let in_file = frame.file.is_some() && frame.line.is_some();
        let of_module = !(frame.module.is_empty() || in_file && frame.function.is_some());
        let (front, back) = match &frame.function {
            Some(function) if of_module => (function.clone(), String::new()),
            None if of_module => (String::new(), format!("+0x{:x}", frame.offset)),
            _ => return Self::whole(whole),
        };
        let module = whole.get(front.len()..whole.len() - back.len());
        Self {
            module: module.unwrap_or_default().to_owned(),
            front,
            back,
        }
    }

    /// Characters without which the words say too little.
    fn least(&self) -> usize {
        let module = match self.back.is_empty() {
            true => 0,
            false => length(&self.module).min(MODULE),
        };
        length(&self.front) + module + length(&self.back)
    }

    /// The words in at most `room` characters, the module cut first.
    fn fitted(&self, room: usize) -> String {
        let whole = self.to_string();
        if length(&whole) <= room || self.module.is_empty() {
            return clip(&whole, room);
        }
        let module = room.saturating_sub(length(&self.back)).max(1);
        match self.back.is_empty() {
            true => clip(&self.front, room),
            false => clip(&(clip(&self.module, module) + &self.back), room),
        }
    }
}

impl fmt::Display for CallerWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.front, self.module, self.back)
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The location of a site: the caller that says most; then, where other sites have the same, what distinguishes the site.
#[derive(Clone, Debug, Default)]
pub(crate) struct Location {
    place: CallerWords,
    /// The first caller around the place in which the sites differ.
    caller: Option<CallerWords>,
    /// ` #` and the beginning of the site's name.
    name: String,
}

impl Location {
    /// The text in at most `room` characters: modules are cut first, and the part that distinguishes the site gets half of the room.
    fn fitted(&self, room: usize) -> String {
        let whole = self.to_string();
        if length(&whole) <= room {
            return clip(&whole, room);
        }
        let room = room.saturating_sub(length(&self.name)).max(1);
        let Some(caller) = self.caller.as_ref().filter(|_| room > CALLER) else {
            return self.place.fitted(room) + &self.name;
        };
        let room = room - length(AROUND);
        let beside = room.saturating_sub(self.place.least()).max(room / 2);
        let caller = caller.fitted(beside);
        let place = self.place.fitted(room - length(&caller));
        format!("{place}{AROUND}{caller}{}", self.name)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if let Some(caller) = &self.caller {
            write!(f, "{AROUND}{caller}")?;
        }
        f.write_str(&self.name)
    }
}

/// Whether a table leaves room for the locations beside it.
pub(crate) fn fit_beside(table: &str, columns: usize) -> bool {
    width(table) + GAP + LOCATION <= columns
}

/// A table with the locations of its rows as its last column, which has the room that is left.
pub(crate) fn beside<'a>(
    table: &str,
    locations: impl Iterator<Item = &'a Location>,
    columns: usize,
) -> String {
    let used = width(table);
    let room = columns.saturating_sub(used + GAP).max(LOCATION);
    let titles = std::iter::once("allocated in".to_owned());
    let cells = titles.chain(fitted(locations, room));
    let lines = table.lines().zip(cells);
    let gap = " ".repeat(GAP);
    lines
        .map(|(line, cell)| format!("{line:<used$}{gap}{cell}\n"))
        .collect()
}

fn width(table: &str) -> usize {
    table.lines().map(length).max().unwrap_or(0)
}

/// Locations in at most `room` characters each, 12 at least. Different ones stay different: those that are cut to the same text show the
/// part in which they differ.
fn fitted<'a>(locations: impl Iterator<Item = &'a Location>, room: usize) -> Vec<String> {
    let locations: Vec<&Location> = locations.collect();
    let mut cut: Vec<String> = locations.iter().map(|one| one.fitted(room)).collect();
    let whole = |location: &&Location| clip(&location.to_string(), usize::MAX);
    let wholes: Vec<String> = locations.iter().map(whole).collect();
    make_distinct(&mut cut, &wholes, room);
    cut
}

/// The caller that says most to the program's author: not the container of the standard library
/// that asked for the memory, but the line that asked the container.
fn telling(site: &Site) -> Option<usize> {
    let frames = &site.frames;
    let is_java = site.kind == SiteKind::Java;
    let is_python = frames.iter().any(Frame::is_source);
    let own = |frame: &Frame| {
        let file = frame.file.as_deref();
        file.is_some_and(|file| match is_java {
            true => !JAVA_PLATFORM.iter().any(|folder| file.starts_with(folder)),
            false => {
                let is_library = file.starts_with("/usr/") || file.contains("/rustlib/");
                !(is_library || (is_python && is_python_platform(frame)))
            }
        })
    };
    let position = |wanted: &dyn Fn(&Frame) -> bool| frames.iter().position(wanted);
    position(&own)
        .or_else(|| position(&Frame::is_source))
        .or_else(|| position(&|frame| frame.file.is_some()))
        .or_else(|| position(&|frame| frame.function.is_some()))
        .or_else(|| (!frames.is_empty()).then_some(0))
}

/// True for a frame of a Python program that is not its author's: of the interpreter, whose C code may have debugging information, of
/// Python's own modules, and of installed packages.
fn is_python_platform(frame: &Frame) -> bool {
    let module = frame.module.rsplit('/').next().unwrap_or_default();
    let is_interpreter = module.starts_with("python") || module.starts_with("libpython");
    let mut folders = PYTHON_PLATFORM.into_iter();
    let is_installed = folders.any(|folder| frame.module.contains(folder));
    // `<string>`, `<frozen importlib._bootstrap>`.
    let is_unwritten = frame.module.starts_with('<');
    is_installed || is_unwritten || (!frame.is_source() && is_interpreter)
}

/// `graph.cc:88 load_graph: edges`, with the column where asked for.
fn shown(site: &Site, with_column: bool) -> CallerWords {
    let Some(frame) = telling(site).map(|at| &site.frames[at]) else {
        return CallerWords::whole(match site.kind {
            SiteKind::Shared => site.label(),
            _ => site.id.to_string(),
        });
    };
    match (&frame.file, frame.line, &frame.function) {
        // The line comes first: it tells sites apart where a long name is cut.
        (Some(file), Some(line), Some(function)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            let column = frame.column.filter(|_| with_column);
            let column = column.map_or(String::new(), |column| format!(":{column}"));
            let variable = frame.variable.as_ref();
            let variable = variable.map_or(String::new(), |name| format!(": {name}"));
            CallerWords::whole(format!("{file}:{line}{column} {function}{variable}"))
        }
        _ => CallerWords::of(frame),
    }
}

/// The location of each site. Sites of one place are distinguished by the column, then by the first caller around it in which they differ,
/// then by their names.
pub(crate) fn locations(sites: &[Site]) -> Vec<Location> {
    let location = |site| Location {
        place: shown(site, false),
        ..Location::default()
    };
    let mut locations: Vec<Location> = sites.iter().map(location).collect();
    for group in alike(&locations) {
        for at in group {
            locations[at].place = shown(&sites[at], true);
        }
    }
    for group in alike(&locations) {
        for (at, caller) in group.iter().zip(differing(sites, &group)) {
            locations[*at].caller = caller;
        }
    }
    for group in alike(&locations) {
        for at in group {
            let name = sites[at].id.to_string();
            locations[at].name = format!(" #{}", name.get(..8).unwrap_or(&name));
        }
    }
    locations
}

/// Positions of locations that are there more than once.
fn alike(locations: &[Location]) -> Vec<Vec<usize>> {
    let texts: Vec<String> = locations.iter().map(Location::to_string).collect();
    distinct_cuts::alike(&texts, 0..texts.len())
}

/// The outer caller of each site of a group, at the first depth where not all are the same.
fn differing(sites: &[Site], group: &[usize]) -> Vec<Option<CallerWords>> {
    let outer = |at: usize, depth: usize| {
        let site = &sites[at];
        let first = telling(site).map_or(0, |telling| telling + 1);
        site.frames.get(first + depth).map(CallerWords::of)
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
    use super::Location;
    use isotherm_model::site::{Frame, Site, SiteId, SiteKind};

    fn locations(sites: &[Site]) -> Vec<String> {
        let all = super::locations(sites);
        all.iter().map(ToString::to_string).collect()
    }

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

    fn python(file: &str, function: &str, line: u32) -> Frame {
        Frame {
            module: file.into(),
            offset: line.into(),
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(line),
            ..Frame::default()
        }
    }

    #[test]
    fn a_site_of_python_is_at_the_authors_line_rather_than_the_interpreters_or_a_packages() {
        let in_interpreter = Frame {
            module: "/opt/python/lib/libpython3.12.so.1.0".into(),
            ..frame("Objects/obmalloc.c", "_PyMem_RawMalloc", 1, None)
        };
        let in_numpy = python(
            "/home/me/venv/lib/python3.12/site-packages/numpy/core/numeric.py",
            "ones",
            191,
        );
        let main = python("/home/me/graph.py", "main", 40);
        let frames = vec![
            in_interpreter.clone(),
            in_numpy.clone(),
            python("/home/me/graph.py", "Graph.load", 12),
            main.clone(),
        ];
        let import = python(
            "<frozen importlib._bootstrap>",
            "_call_with_frames_removed",
            5,
        );
        let imported = vec![in_interpreter.clone(), import.clone(), main];
        let packaged = vec![in_interpreter, import, in_numpy];
        let own_module = Frame {
            module: "/home/me/fast.so".into(),
            ..frame("/home/me/fast.c", "grow", 7, None)
        };
        let extension = vec![own_module, python("/home/me/graph.py", "main", 41)];
        let sites = [
            site(1, frames),
            site(2, imported),
            site(3, packaged),
            site(4, extension),
        ];
        let wanted = [
            "graph.py:12 Graph.load",
            "graph.py:40 main",
            "<frozen importlib._bootstrap>:5 _call_with_frames_removed",
            "fast.c:3 grow",
        ];
        assert_eq!(locations(&sites), wanted);
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

    /// A caller without a source line, as in a library of a distribution.
    fn caller(module: &str, function: Option<&str>, offset: u64) -> Frame {
        Frame {
            module: format!("/usr/lib/{module}").into(),
            offset,
            function: function.map(str::to_owned),
            ..Frame::default()
        }
    }

    fn fitted(sites: &[Site], room: usize) -> Vec<String> {
        super::fitted(super::locations(sites).iter(), room)
    }

    #[test]
    fn a_long_module_is_cut_before_what_tells_sites_apart() {
        let umath = "_multiarray_umath.cpython-311-x86_64-linux-gnu.so";
        let numpy = |id, offset| site(id, vec![caller(umath, None, offset)]);
        let wanted = ["_multiarray_um…+0x1f2a40", "_multiarray_um…+0x1f2b88"];
        let sites = [numpy(1, 0x1f_2a40), numpy(2, 0x1f_2b88)];
        assert_eq!(fitted(&sites, 24), wanted);
        let redis = |id, outer| {
            let redis = |function| caller("redis-check-rdb", Some(function), 1);
            site(id, vec![redis("zmalloc_usable"), redis(outer)])
        };
        let sites = [redis(3, "_sdsnewlen"), redis(4, "dictExpand")];
        let wanted = ["zmalloc_usable < _sdsnewlen", "zmalloc_usable < dictExpand"];
        assert_eq!(fitted(&sites, 32), wanted);
        assert_eq!(
            fitted(&sites, 19),
            ["zmalloc… < _sdsnew…", "zmalloc… < dictExp…"].map(str::to_owned)
        );
        let whole = "zmalloc_usable (redis-check-rdb) < _sdsnewlen (redis-check-rdb)";
        assert_eq!(fitted(&sites, 80)[0], whole);
    }

    #[test]
    fn two_callers_in_one_long_function_stay_distinct() {
        let through = |id, line| {
            let made = python("/home/me/graph.py", "made_for_a_caller_of_this_module", 12);
            let outer = python(
                "/home/me/graph.py",
                "Loader.read_all_of_the_edges_of_a_graph",
                line,
            );
            site(id, vec![made, outer])
        };
        let sites = [through(1, 140), through(2, 141), through(3, 152)];
        for room in 12..90 {
            let texts = fitted(&sites, room);
            let distinct: std::collections::BTreeSet<&String> = texts.iter().collect();
            assert_eq!(distinct.len(), 3, "{room}: {texts:#?}");
        }
    }

    #[test]
    fn a_location_keeps_to_its_room_and_steers_no_terminal() {
        let deep = |id, outer: &str| {
            let inner = caller("m\x1b[2J.so", Some("allocate"), 7);
            site(id, vec![inner, caller("m.so", Some(outer), 9)])
        };
        let sites = [
            deep(1, "a"),
            deep(2, "b"),
            deep(3, "b"),
            site(4, vec![caller("m.so", None, u64::MAX)]),
        ];
        for room in 12..70 {
            for text in fitted(&sites, room) {
                assert!(text.chars().count() <= room, "{room}: {text}");
                assert!(!text.contains('\x1b'), "{text}");
            }
        }
        assert_eq!(Location::default().fitted(12), "");
    }
}
