//! `check` finds a program as a shell does, and checks it before it is started, so that each reason why the runtime cannot be preloaded is
//! one clear sentence instead of a silent run without Isotherm.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, elf};

/// Scripts may name scripts as their interpreters; Linux follows four.
const MOST_INTERPRETERS: usize = 5;

/// Finds the program as a shell would and checks that the runtime can be preloaded into it.
///
/// # Errors
/// One sentence: not found, not executable, statically linked, set-user-ID, another architecture,
/// another C library.
pub(crate) fn check(name: &OsStr) -> Result<PathBuf> {
    let path = find(name)?;
    check_file(&path, MOST_INTERPRETERS)?;
    Ok(path)
}

fn find(name: &OsStr) -> Result<PathBuf> {
    let shown = name.to_string_lossy();
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        if !path.exists() {
            bail!("{shown}: no such program");
        }
        return Ok(path);
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&search).map(|dir| dir.join(name));
    let runnable = |path: &PathBuf| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    candidates
        .find(runnable)
        .with_context(|| format!("{shown}: no such program on the PATH"))
}

fn check_file(path: &Path, interpreters_left: usize) -> Result<()> {
    let shown = path.display();
    let meta = path
        .metadata()
        .with_context(|| format!("{shown}: cannot be examined"))?;
    if meta.is_dir() {
        bail!("{shown}: is a directory, not a program");
    }
    if !meta.is_file() {
        bail!("{shown}: is a pipe, a socket or a device, not a program");
    }
    if rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_err() {
        bail!("{shown}: is not executable; `chmod +x` makes it so");
    }
    check_privileges(path, &meta)?;
    let mut head = [0_u8; 4096];
    let mut file = File::open(path).with_context(|| format!("{shown}: cannot be read"))?;
    let length = file
        .read(&mut head)
        .with_context(|| format!("{shown}: cannot be read"))?;
    let head = &head[..length];
    if let Some(line) = head.strip_prefix(b"#!") {
        return check_script(path, line, interpreters_left);
    }
    if head.starts_with(b"\x7fELF") {
        return check_elf(path);
    }
    bail!("{shown}: is neither an ELF program nor a script that names its interpreter with #!")
}

/// The loader ignores `LD_PRELOAD` in programs that change their privileges.
fn check_privileges(path: &Path, meta: &std::fs::Metadata) -> Result<()> {
    let euid = rustix::process::geteuid().as_raw();
    let egid = rustix::process::getegid().as_raw();
    let set_user = meta.mode() & 0o4000 != 0 && meta.uid() != euid;
    let set_group = meta.mode() & 0o2010 == 0o2010 && meta.gid() != egid;
    let mut buffer = [0_u8; 64];
    let capabilities =
        euid != 0 && rustix::fs::getxattr(path, "security.capability", &mut buffer).is_ok();
    if set_user || set_group || capabilities {
        bail!(
            "{}: changes its privileges (set-user-ID, set-group-ID or file capabilities), so the \
             loader ignores preloaded libraries; run it as the user it changes to",
            path.display()
        );
    }
    Ok(())
}

fn check_script(path: &Path, line: &[u8], interpreters_left: usize) -> Result<()> {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let word = line
        .trim_ascii()
        .split(u8::is_ascii_whitespace)
        .next()
        .unwrap_or_default();
    let interpreter = Path::new(OsStr::from_bytes(word));
    if interpreters_left == 0 || word.is_empty() {
        bail!(
            "{}: its first line names no usable interpreter",
            path.display()
        );
    }
    if !interpreter.exists() {
        bail!(
            "{}: its interpreter {} does not exist",
            path.display(),
            interpreter.display()
        );
    }
    check_file(interpreter, interpreters_left - 1)
        .with_context(|| format!("{}: is a script", path.display()))
}

fn check_elf(path: &Path) -> Result<()> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("{shown}: cannot be read"))?;
    // Only the headers are read, and not megabytes of code before the program may start.
    let data = &ReadCache::new(file);
    let broken = || format!("{shown}: is not a valid 64-bit ELF program");
    if data.read_bytes_at(4, 1) == Ok(&[elf::ELFCLASS32]) {
        bail!("{shown}: is a 32-bit program; Isotherm serves 64-bit programs");
    }
    let header = elf::FileHeader64::<Endianness>::parse(data).with_context(broken)?;
    let endian = header.endian().with_context(broken)?;
    if header.e_machine(endian) != own_machine() {
        bail!("{shown}: is for another processor than this one");
    }
    let segments = header.program_headers(endian, data).with_context(broken)?;
    let loader = segments
        .iter()
        .find_map(|s| s.interpreter(endian, data).ok().flatten());
    let Some(loader) = loader else {
        bail!(
            "{shown}: is statically linked, so there is nothing to preload; link it dynamically, \
             or have `isotherm daemon` place its memory page by page, which needs nothing of the program"
        );
    };
    let loader = String::from_utf8_lossy(loader);
    if !loader.contains("ld-linux") {
        bail!(
            "{shown}: uses the C library of {loader}; the runtime is built for the GNU C library"
        );
    }
    Ok(())
}

const fn own_machine() -> u16 {
    if cfg!(target_arch = "aarch64") {
        elf::EM_AARCH64
    } else {
        elf::EM_X86_64
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use std::ffi::OsStr;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn file(dir: &Path, name: &str, content: &[u8], mode: u32) -> std::path::PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn refusal(path: &Path) -> String {
        format!("{:#}", check(path.as_os_str()).unwrap_err())
    }

    #[test]
    fn ordinary_programs_and_scripts_pass() {
        let dir = tempfile::tempdir().unwrap();
        let script = file(dir.path(), "s", b"#! /bin/sh\necho hi\n", 0o755);
        assert!(check(OsStr::new("ls")).is_ok());
        assert!(check(script.as_os_str()).is_ok());
    }

    #[test]
    fn each_reason_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let text = file(dir.path(), "text", b"hello", 0o755);
        let plain = file(dir.path(), "plain", b"#!/bin/sh\n", 0o644);
        let lost = file(dir.path(), "lost", b"#!/no/such/sh\n", 0o755);
        let itself = dir.path().join("itself");
        let line = format!("#!{}\n", itself.display());
        file(dir.path(), "itself", line.as_bytes(), 0o755);
        let cut = file(dir.path(), "cut", b"\x7fELF\x02\x01\x01", 0o755);
        assert!(refusal(Path::new("/no/such")).contains("no such program"));
        assert!(refusal(Path::new("no-such-program-anywhere")).contains("on the PATH"));
        assert!(refusal(&text).contains("neither an ELF program nor a script"));
        assert!(
            refusal(&plain).contains("is not executable") || rustix::process::geteuid().is_root()
        );
        assert!(refusal(&lost).contains("does not exist"));
        assert!(refusal(&itself).contains("no usable interpreter"));
        assert!(refusal(&cut).contains("valid 64-bit ELF"));
        assert!(refusal(dir.path()).contains("is a directory"));
    }
}
