//! [`Repository`] reads the repository into a value: its files and its packages. The only module that does input.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

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
#[derive(Debug)]
pub(crate) struct Package {
    /// Name without the prefix `isotherm-`: `model`, `isotherm`, `xtask`.
    pub(crate) name: String,
    /// The manifest's path from the repository's root.
    pub(crate) manifest: String,
    /// Its dependencies among the workspace's packages.
    pub(crate) uses: Vec<Use>,
}

/// One dependency on another package of the workspace.
#[derive(Debug)]
pub(crate) struct Use {
    /// Name without the prefix `isotherm-`.
    pub(crate) name: String,
    /// Listed under `dev-dependencies`: for tests only.
    pub(crate) for_tests: bool,
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
    let output = Command::new("git")
        .args([
            "-c",
            &safe,
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .context(
            "cannot run git, which lists the files to check; install it: apt-get install git",
        )?;
    ensure!(
        output.status.success(),
        "git ls-files failed in {}; the house rules need a git checkout: {}",
        root.display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let list = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
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
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("cargo metadata printed another format")?;
    Ok(metadata
        .packages
        .into_iter()
        .map(|package| package.within(root))
        .collect())
}

/// The used parts of the output of `cargo metadata`.
/// The used parts of the output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    /// Its folder; none for a package of a registry.
    path: Option<String>,
}

impl MetadataPackage {
    fn within(self, root: &Path) -> Package {
        let manifest = self.manifest_path.strip_prefix(root);
        let ours = self.dependencies.iter().filter(|used| used.path.is_some());
        Package {
            manifest: manifest
                .unwrap_or(&self.manifest_path)
                .display()
                .to_string(),
            name: short_name(&self.name),
            uses: ours
                .map(|used| Use {
                    name: short_name(&used.name),
                    for_tests: used.kind.as_deref() == Some("dev"),
                })
                .collect(),
        }
    }
}

fn short_name(package: &str) -> String {
    let short = package.strip_prefix("isotherm-");
    short.unwrap_or(package).to_owned()
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
        let package: MetadataPackage = serde_json::from_value(metadata).expect("a package");
        let package = package.within(Path::new("/somewhere"));
        assert_eq!(package.name, "policy");
        assert_eq!(package.manifest, "crates/policy/Cargo.toml");
        let uses: Vec<_> = package
            .uses
            .iter()
            .map(|u| (u.name.as_str(), u.for_tests))
            .collect();
        assert_eq!(uses, [("model", false), ("sys", true)]);
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
