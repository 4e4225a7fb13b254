//! Every link to a file of this repository, and every file name in code type, on a page names an existing file:
//! a moved file takes its mentions along.

use pulldown_cmark::{Event, Parser, Tag};

use crate::finding::Finding;
use crate::repository::Repository;

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in repository
        .texts()
        .filter(|(file, _)| file.path.ends_with(".md"))
    {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (event, range) in Parser::new(text).into_offset_iter() {
            let message = match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    broken_link(repository, folder, &dest_url)
                }
                Event::Code(code) => broken_mention(repository, &code),
                _ => None,
            };
            if let Some(message) = message {
                let line = text[..range.start].matches('\n').count() + 1;
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    findings
}

/// A link is relative to its page; links to the web and to the same page are not checked.
fn broken_link(repository: &Repository, folder: &str, target: &str) -> Option<String> {
    let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
    let path = target.split('#').next().unwrap_or_default();
    if is_elsewhere || path.is_empty() {
        return None;
    }
    match resolve(folder, path) {
        Some(resolved) if repository.has_path(&resolved) => None,
        _ => Some(format!(
            "links to {target}, which is not in the repository; correct the link"
        )),
    }
}

/// Joins a relative path to a folder; none where the result is outside the repository.
fn resolve(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Code type that looks like a path: its first word has a `/`, begins with a directory that the
/// repository has, and holds no pattern. The word may end in a line number.
fn broken_mention(repository: &Repository, code: &str) -> Option<String> {
    let word = code.split_whitespace().next()?;
    let word = word.strip_prefix("./").unwrap_or(word);
    let path = word.split(':').next()?;
    let (top, _) = path.split_once('/')?;
    let is_pattern = path.contains(|c: char| !(c.is_ascii_alphanumeric() || "/._-+".contains(c)));
    if top.is_empty() || is_pattern || !repository.has_path(top) {
        return None;
    }
    if repository.has_path(path) || is_built(repository, path) {
        return None;
    }
    Some(format!(
        "names `{path}`, which is not in the repository; correct the name"
    ))
}

/// Whether a path is, or is below, an entry without a pattern in a `.gitignore`. A build makes such a place,
/// and a page may name it.
fn is_built(repository: &Repository, path: &str) -> bool {
    let mut lists = repository
        .texts()
        .filter(|(file, _)| file.name() == ".gitignore");
    lists.any(|(file, text)| {
        let folder = file.path.trim_end_matches(".gitignore");
        text.lines().any(|line| {
            let place = format!("{folder}{}", line.trim_matches('/'));
            !line.is_empty() && (path == place || path.starts_with(&format!("{place}/")))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(page: &str) -> Vec<String> {
        let files = [
            ("docs/page.md", page),
            ("docs/other.md", ""),
            ("crates/a/src/lib.rs", ""),
        ];
        check(&Repository::of(&files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_broken_link_is_reported_with_its_line() {
        let found = messages("# Page\n\nSee [this](missing.md) and ![that](../plot.png).\n");
        assert_eq!(found.len(), 2);
        assert!(
            found[0].starts_with("docs/page.md:3: links to missing.md"),
            "{found:?}"
        );
    }

    #[test]
    fn a_link_that_leaves_the_repository_is_reported() {
        assert_eq!(messages("[out](../../elsewhere.md)\n").len(), 1);
    }

    #[test]
    fn links_that_hold_pass() {
        let page =
            "[a](other.md) [b](other.md#part) [c](../crates/a) [d](https://x.org/y) [e](#f)\n";
        assert_eq!(messages(page), [""; 0]);
    }

    #[test]
    fn a_mention_of_a_moved_file_is_reported() {
        let found = messages("The file `crates/a/src/old.rs` and `crates/b:12`.\n");
        assert!(
            found[0].contains("names `crates/a/src/old.rs`"),
            "{found:?}"
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn code_type_that_is_no_path_of_ours_passes() {
        let page =
            "`crates/a/src/lib.rs:3` `crates/*/src` `and/or` `/proc/self` `docs/<name>` `x`\n";
        assert_eq!(messages(page), [""; 0]);
    }
}
