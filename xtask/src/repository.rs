//! [`Repository`] reads the repository into a value: its files and its packages. The only module that does input.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Deserializer};

use crate::rust_source::RustSource;

/// The input of the rules.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    /// Tracked files, and untracked ones that git does not ignore, sorted by path.
    pub(crate) files: Vec<RepositoryFile>,
    /// The workspace's own packages.
    pub(crate) packages: Vec<Package>,
}

/// One file of the repository.
#[derive(Debug)]
pub(crate) struct RepositoryFile {
    /// Path from the repository's root, with `/` between the parts.
    pub(crate) path: String,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// The content, where it is text (UTF-8 without zero bytes).
    pub(crate) text: Option<String>,
    /// The parsed content of a `.rs` file; a syntax error is kept as its message.
    pub(crate) rust: Option<Result<RustSource, String>>,
}

/// One package of the workspace, as `cargo metadata` describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    /// Name without the prefix `isotherm-`: `model`, `isotherm`, `xtask`.
    #[serde(deserialize_with = "short_name")]
    pub(crate) name: String,
    /// The manifest's path from the repository's root.
    #[serde(rename = "manifest_path")]
    pub(crate) manifest: String,
    /// Its dependencies among the workspace's packages.
    #[serde(rename = "dependencies")]
    pub(crate) uses: Vec<Use>,
}

/// One dependency on another package of the workspace.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Use {
    /// Name without the prefix `isotherm-`.
    #[serde(deserialize_with = "short_name")]
    pub(crate) name: String,
    /// `dev` where it is listed under `dev-dependencies`: for tests only.
    pub(crate) kind: Option<String>,
    /// Its folder; none for a package of a registry.
    pub(crate) path: Option<String>,
}

impl Repository {
    /// Reads the checkout that this program was built from.
    pub(crate) fn load() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().context("xtask has no parent directory")?;
        let mut files = Vec::new();
        for path in listed_files(root)? {
            // A file that git knows but that was just deleted is not checked.
            if let Some(file) = RepositoryFile::read(root, path)? {
                files.push(file);
            }
        }
        Ok(Self {
            files,
            packages: workspace_packages(root)?,
        })
    }

    /// The file at a path from the root.
    pub(crate) fn file(&self, path: &str) -> Option<&RepositoryFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Is there a file, or a directory with files in it, at this path from the root?
    pub(crate) fn has_path(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let directory = format!("{path}/");
        path.is_empty()
            || self
                .files
                .iter()
                .any(|file| file.path == path || file.path.starts_with(&directory))
    }

    /// The files whose content is text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&RepositoryFile, &str)> {
        self.files
            .iter()
            .filter_map(|file| Some((file, file.text.as_deref()?)))
    }

    /// The lines of these files, numbered from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&RepositoryFile, usize, &str)> {
        self.texts().flat_map(|(file, text)| {
            let lines = (1..).zip(text.lines());
            lines.map(move |(number, line)| (file, number, line))
        })
    }

    /// The Rust files that parse.
    pub(crate) fn rust_sources(&self) -> impl Iterator<Item = (&RepositoryFile, &RustSource)> {
        self.files
            .iter()
            .filter_map(|file| Some((file, file.rust.as_ref()?.as_ref().ok()?)))
    }

    /// An invented repository, for the tests of the rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| RepositoryFile::new((*path).to_owned(), text.as_bytes()))
            .collect();
        Self {
            files,
            packages: Vec::new(),
        }
    }
}

impl RepositoryFile {
    fn read(root: &Path, path: String) -> Result<Option<Self>> {
        let full = root.join(&path);
        if !full.is_file() {
            return Ok(None);
        }
        let content = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        Ok(Some(Self::new(path, &content)))
    }

    fn new(path: String, content: &[u8]) -> Self {
        let text = match content.contains(&0) {
            true => None,
            false => str::from_utf8(content).ok().map(str::to_owned),
        };
        let rust = match path.ends_with(".rs") {
            true => text.as_deref().map(RustSource::parse),
            false => None,
        };
        Self {
            bytes: content.len() as u64,
            path,
            text,
            rust,
        }
    }

    /// The crate that a file under `crates/` belongs to.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// A third party's file, kept unchanged: the report is one page without a network, so the repository
    /// contains its drawing library. Rules about our own text do not apply.
    pub(crate) fn is_foreign(&self) -> bool {
        self.path.starts_with("crates/report/assets/")
    }

    /// Does the whole file belong to tests, benchmarks or examples?
    pub(crate) fn is_test_code(&self) -> bool {
        let name = self.name();
        ["/tests/", "/benches/", "/examples/"]
            .iter()
            .any(|part| self.path.contains(part))
            || name == "tests.rs"
            || name.ends_with("_tests.rs")
    }
}

/// `git ls-files`, with untracked files that are not ignored.
fn listed_files(root: &Path) -> Result<Vec<String>> {
    // A checkout that belongs to another user (a container's volume) is read all the same: no hook or
    // configured command runs here.
    let safe = format!("safe.directory={}", root.display());
    let mut git = Command::new("git");
    git.args(["-c", &safe, "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root);
    let printed = printed_by(git).with_context(|| {
        let root = root.display();
        format!("git cannot list the files in {root}; the house rules need git (apt-get install git) and a checkout of it")
    })?;
    let list = String::from_utf8(printed).context("a file name is not UTF-8")?;
    let mut paths: Vec<String> = list
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn workspace_packages(root: &Path) -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut metadata = Command::new(cargo);
    metadata
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root);
    let printed = printed_by(metadata).context("cargo metadata")?;
    let metadata: Metadata =
        serde_json::from_slice(&printed).context("cargo metadata printed another format")?;
    let packages = metadata.packages.into_iter();
    Ok(packages.map(|package| package.within(root)).collect())
}

/// The standard output of a command that succeeds.
fn printed_by(mut command: Command) -> Result<Vec<u8>> {
    let output = command.output().context("it cannot be run")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "it failed: {}", errors.trim());
    Ok(output.stdout)
}

/// The used parts of the output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

impl Package {
    /// The package with its manifest's path from the root, and with the dependencies that are in the workspace.
    fn within(mut self, root: &Path) -> Self {
        if let Ok(inside) = Path::new(&self.manifest).strip_prefix(root) {
            self.manifest = inside.display().to_string();
        }
        self.uses.retain(|used| used.path.is_some());
        self
    }
}

fn short_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let short = name.strip_prefix("isotherm-");
    Ok(short.unwrap_or(&name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_read_with_the_dependencies_that_are_ours() {
        let metadata = serde_json::json!({
            "name": "isotherm-policy",
            "manifest_path": "/somewhere/crates/policy/Cargo.toml",
            "dependencies": [
                { "name": "isotherm-model", "path": "/somewhere/crates/model", "kind": null },
                { "name": "isotherm-sys", "path": "/somewhere/crates/sys", "kind": "dev" },
                { "name": "libc", "kind": null },
            ],
        });
        let package: Package = serde_json::from_value(metadata).expect("a package");
        let package = package.within(Path::new("/somewhere"));
        assert_eq!(package.name, "policy");
        assert_eq!(package.manifest, "crates/policy/Cargo.toml");
        let uses: Vec<_> = package
            .uses
            .iter()
            .map(|u| (u.name.as_str(), u.kind.as_deref()))
            .collect();
        assert_eq!(uses, [("model", None), ("sys", Some("dev"))]);
    }

    #[test]
    fn this_checkout_is_read_with_its_packages_and_this_very_file() {
        let repository = Repository::load().expect("a checkout");
        let file = repository
            .file("xtask/src/repository.rs")
            .expect("this file");
        assert!(matches!(file.rust, Some(Ok(_))));
        assert!(
            repository
                .packages
                .iter()
                .any(|package| package.name == "xtask")
        );
        assert!(repository.has_path("xtask/src/"));
        assert!(!repository.has_path("xtask/sr"));
    }
}
