//! Lists the lines of code that access the data of each site: a [`CodeLine`] has the function, the accesses (loads, stores), and a pattern.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use isotherm_model::code_access::{AccessKind, CodeAccess, CodePattern, SampleWalk};
use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, SiteId};
use serde::Serialize;

use crate::words::share;

/// A line of code, with its sampled accesses to the data of a site.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CodeLine {
    /// `bfs.cc:166 bfs`; without a line the function and its module, without symbols the module and the address.
    pub text: String,
    /// Function, where symbols were found; of inlined code the innermost one of the program's own.
    pub function: Option<String>,
    /// Source file, where debugging information was found.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// Path of the module; empty for code without a file.
    pub module: String,
    /// Accesses, in the unit of `totals.counted`.
    pub accesses: u64,
    /// Share of the accesses to the site.
    pub accesses_share: f64,
    /// Accesses beside these that the caches served.
    pub served_by_caches: u64,
    /// Accesses whose instruction reads.
    pub loads: u64,
    /// Accesses whose instruction writes; one that does both counts in both.
    pub stores: u64,
    /// Threads that were sampled there, 16 at most.
    pub threads: u32,
    /// How the samples of its busiest instruction follow each other: `stream`, `stride` or `random`; none for too few samples.
    pub pattern: Option<&'static str>,
    /// Step of a `stride`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stride_bytes: Option<u64>,
    /// Pairs of samples from which the pattern was concluded.
    #[serde(skip)]
    walk: SampleWalk,
}

impl CodeLine {
    /// What it does: `loads`, `stores`, `loads, stores`; empty where that is not known.
    pub(crate) fn does(&self) -> &'static str {
        match (self.loads > 0, self.stores > 0) {
            (true, true) => "loads, stores",
            (true, false) => "loads",
            (false, true) => "stores",
            (false, false) => "",
        }
    }

    /// Its pattern in words; empty where it is not known.
    pub(crate) fn pattern_in_words(&self) -> String {
        let pattern = self.walk.pattern();
        pattern.map_or(String::new(), |pattern| pattern.to_string())
    }

    fn add(&mut self, row: &CodeAccess) {
        let accesses = row.accesses.0;
        self.accesses = self.accesses.saturating_add(accesses);
        self.served_by_caches = self.served_by_caches.saturating_add(row.served.0);
        if matches!(row.kind, Some(AccessKind::Load | AccessKind::Both)) {
            self.loads = self.loads.saturating_add(accesses);
        }
        if matches!(row.kind, Some(AccessKind::Store | AccessKind::Both)) {
            self.stores = self.stores.saturating_add(accesses);
        }
        self.threads = self.threads.max(row.threads);
        if row.walk.pairs > self.walk.pairs {
            self.walk = row.walk;
            let pattern = row.walk.pattern();
            self.pattern = pattern.map(CodePattern::word);
            self.stride_bytes = match pattern {
                Some(CodePattern::Stride(bytes)) => Some(bytes.0),
                _ => None,
            };
        }
    }
}

/// `bfs.cc:166 bfs`: the line first, which tells code apart where a long name is cut.
fn text(frame: &Frame) -> String {
    match (&frame.function, &frame.file, frame.line) {
        (Some(function), Some(file), Some(line)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{file}:{line} {function}")
        }
        _ if frame.module.is_empty() && frame.function.is_none() => {
            "code without a file".to_owned()
        }
        _ => frame.to_string(),
    }
}

/// The code of each site, the line with most accesses first. `accesses` gives the accesses to a site.
pub(crate) fn lines_by_site(
    profile: &Profile,
    accesses: impl Fn(SiteId) -> u64,
) -> BTreeMap<SiteId, Vec<CodeLine>> {
    let mut lines = BTreeMap::<(SiteId, String), CodeLine>::new();
    for row in &profile.code {
        let words = text(&row.code);
        let line = lines
            .entry((row.site, words))
            .or_insert_with_key(|(_, text)| CodeLine {
                text: text.clone(),
                function: row.code.function.clone(),
                file: row.code.file.clone(),
                line: row.code.line,
                module: row.code.module.to_string(),
                ..CodeLine::default()
            });
        line.add(row);
    }
    let mut sites = BTreeMap::<SiteId, Vec<CodeLine>>::new();
    for ((site, _), mut line) in lines {
        line.accesses_share = share(line.accesses, accesses(site));
        sites.entry(site).or_default().push(line);
    }
    for lines in sites.values_mut() {
        // Equals stay in the order of their texts.
        lines.sort_by_key(|line| Reverse((line.accesses, line.served_by_caches)));
    }
    sites
}

#[cfg(test)]
mod tests {
    use super::lines_by_site;
    use isotherm_model::code_access::{AccessKind, CodeAccess, SampleWalk};
    use isotherm_model::profile::{Meta, Profile};
    use isotherm_model::site::{Frame, SiteId};
    use isotherm_model::units::{Accesses, Bytes};

    fn row(offset: u64, line: Option<u32>, kind: AccessKind, accesses: u64) -> CodeAccess {
        CodeAccess {
            site: SiteId(5),
            code: Frame {
                module: "/bin/bfs".into(),
                offset,
                function: line.map(|_| "bfs".to_owned()),
                file: line.map(|_| "/src/bfs.cc".to_owned()),
                line,
                ..Frame::default()
            }
            .into(),
            kind: Some(kind),
            accesses: Accesses(accesses),
            streamed: Accesses::ZERO,
            served: Accesses(1),
            threads: 2,
            walk: SampleWalk {
                pairs: accesses,
                continued: accesses - 1,
                divisor: Bytes(4096),
            },
        }
    }

    #[test]
    fn instructions_of_a_line_are_one_and_the_busiest_says_its_pattern() {
        let mut profile = Profile::new(Meta::default());
        let mut random = row(0x20, Some(7), AccessKind::Store, 10);
        random.walk.continued = 0;
        profile.code = vec![
            row(0x10, Some(7), AccessKind::Load, 30),
            random,
            row(0x30, None, AccessKind::Both, 60),
        ];
        let sites = lines_by_site(&profile, |_| 200);
        let lines = &sites[&SiteId(5)];
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["bfs+0x30", "bfs.cc:7 bfs"]);
        let line = &lines[1];
        assert_eq!((line.accesses, line.loads, line.stores), (40, 30, 10));
        assert_eq!((line.accesses_share, line.threads), (0.2, 2));
        assert_eq!(
            (line.pattern, line.stride_bytes),
            (Some("stride"), Some(4096))
        );
        assert_eq!(line.pattern_in_words(), "stride of 4 KiB");
        assert_eq!(
            (line.does(), lines[0].does()),
            ("loads, stores", "loads, stores")
        );
    }
}
