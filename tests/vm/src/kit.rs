//! [`Kit`] finds the emulator, kernel and shell of the guests in `build/vm`, which `setup/vm` fills.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// A pair of emulator and kernel, and the shell of the guests.
#[derive(Clone, Debug)]
pub struct Kit {
    root: PathBuf,
    /// Major version of QEMU.
    version: u32,
    description: String,
}

/// The pairs that `setup/vm` knows, best first: QEMU 10 with Linux 6.12, and QEMU 7.2 with Linux
/// 6.1, which has no memory tiers from firmware.
pub const PAIRS: [&str; 2] = ["newest", "stock"];

impl Kit {
    /// The named pair, or the best available one.
    ///
    /// # Errors
    /// No pair is there: how to get one. An unknown name.
    pub fn find(folder: &Path, name: Option<&str>) -> Result<Self> {
        let wanted: Vec<&str> = match name {
            Some(name) if !PAIRS.contains(&name) => bail!(
                "there is no pair of emulator and kernel called {name}; there are {}",
                PAIRS.join(" and ")
            ),
            Some(name) => vec![name],
            None => PAIRS.to_vec(),
        };
        let Some(pair) = wanted
            .iter()
            .find(|pair| folder.join(pair).join("packages.txt").exists())
        else {
            bail!(
                "there is no emulator in {}; `setup/vm{}` fetches it, or prints why it cannot",
                folder.display(),
                name.map(|name| format!(" {name}")).unwrap_or_default()
            );
        };
        Self::read(folder.join(pair))
    }

    fn read(root: PathBuf) -> Result<Self> {
        let read = |name: &str| {
            let path = root.join(name);
            std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))
        };
        let emulator = read("emulator.txt")?;
        let line = emulator.lines().next().unwrap_or_default();
        let version = line
            .split_once("version ")
            .and_then(|(_, version)| version.split('.').next()?.parse().ok())
            .with_context(|| format!("{}/emulator.txt names no version", root.display()))?;
        let packages = read("packages.txt")?;
        let kernel = packages
            .lines()
            .find_map(|line| line.split_once("./linux-image-"))
            .map_or("an unknown kernel", |(_, kernel)| {
                kernel.split('_').next().unwrap_or(kernel)
            });
        Ok(Self {
            description: format!("QEMU {version} with Linux {kernel}"),
            root,
            version,
        })
    }

    /// Queries the emulator's version, as a test that it works.
    ///
    /// # Errors
    /// It does not start: its output, or the system's error.
    pub fn check(&self) -> Result<()> {
        let (_, libraries) = self.places();
        let emulator = self.emulator();
        let asked = Command::new(&emulator)
            .arg("--version")
            .env("LD_LIBRARY_PATH", libraries)
            .output()
            .with_context(|| format!("{} does not start", emulator.display()))?;
        let said = String::from_utf8_lossy(&asked.stderr);
        ensure!(
            asked.status.success(),
            "{} does not run: {}",
            emulator.display(),
            said.trim()
        );
        Ok(())
    }

    /// For display: `QEMU 10 with Linux 6.12.95+deb12-cloud-amd64`.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The emulator.
    #[must_use]
    pub fn emulator(&self) -> PathBuf {
        self.root.join("root/usr/bin/qemu-system-x86_64")
    }

    /// Arguments and environment for an emulator that was unpacked and not installed: the places of its
    /// firmware and its libraries.
    #[must_use]
    pub fn places(&self) -> (Vec<String>, String) {
        let share = self.root.join("root/usr/share");
        let firmware = ["qemu", "seabios"].map(|name| share.join(name).display().to_string());
        let arguments = firmware
            .into_iter()
            .flat_map(|path| ["-L".to_owned(), path]);
        let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
            .map(|path| self.root.join("root").join(path).display().to_string());
        (arguments.collect(), libraries.join(":"))
    }

    /// The kernel, uncompressed.
    #[must_use]
    pub fn kernel(&self) -> PathBuf {
        self.root.join("vmlinux")
    }

    /// The static busybox that is the guests' shell.
    ///
    /// # Errors
    /// The kit is damaged.
    pub fn busybox(&self) -> Result<Vec<u8>> {
        let candidates = ["root/bin/busybox", "root/usr/bin/busybox"];
        let path = candidates
            .map(|path| self.root.join(path))
            .into_iter()
            .find(|path| path.exists())
            .with_context(|| format!("{} has no busybox", self.root.display()))?;
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// The kernel's modules for zram, by file name, in the order in which they are loaded.
    ///
    /// # Errors
    /// The kit is damaged.
    pub fn modules(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let folder = self.root.join("root/modules");
        let damaged = || format!("cannot read {}", folder.display());
        let entries = std::fs::read_dir(&folder).with_context(damaged)?;
        let module = |entry: std::io::Result<std::fs::DirEntry>| {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            Ok((name, std::fs::read(entry.path())?))
        };
        let modules: std::io::Result<_> = entries.map(module).collect();
        modules.with_context(damaged)
    }

    /// Whether guests of this emulator may have several processors: QEMU 7.2 sometimes crashed newer kernels
    /// with two, and never with one.
    #[must_use]
    pub const fn has_several_processors(&self) -> bool {
        self.version >= 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_kit_the_reason_names_what_fetches_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = Kit::find(folder.path(), None).unwrap_err().to_string();
        assert!(error.contains("`setup/vm` fetches it"), "{error}");
        let error = Kit::find(folder.path(), Some("stock"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("`setup/vm stock` fetches it"), "{error}");
        let error = Kit::find(folder.path(), Some("xen"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("there are newest and stock"), "{error}");
    }

    #[test]
    fn a_kit_says_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let stock = folder.path().join("stock");
        std::fs::create_dir(&stock).unwrap();
        std::fs::write(
            stock.join("emulator.txt"),
            "QEMU emulator version 7.2.22 (Debian)\n",
        )
        .unwrap();
        std::fs::write(
            stock.join("packages.txt"),
            "recipe 0\n00ff  ./linux-image-6.1.0-56-cloud-amd64_6.1.192-2_amd64.deb\n",
        )
        .unwrap();
        let kit = Kit::find(folder.path(), None).unwrap();
        assert_eq!(kit.description(), "QEMU 7 with Linux 6.1.0-56-cloud-amd64");
        assert!(!kit.has_several_processors());
        let reason = kit.check().unwrap_err().to_string();
        assert!(
            reason.contains("qemu-system-x86_64 does not start"),
            "{reason}"
        );
    }
}
