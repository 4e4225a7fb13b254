//! Quotes words, file names and the daemon's socket for the shell in the follow-up commands that Isotherm prints, so that a copied line
//! names the same files; [`SOCKET`] is the default socket.

use std::ffi::{OsStr, OsString};
use std::path::Path;

pub use isotherm_report::shell::{line, word};

/// The default socket of the daemon.
pub const SOCKET: &str = "/run/isotherm/isotherm.sock";

/// The words of a command line as text, in which what is not UTF-8 is replaced.
pub fn as_text(words: &[OsString]) -> Vec<String> {
    let words = words.iter();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// A file as a shell word. If its name begins like an option, `./` is put before it.
pub fn file(path: &Path) -> String {
    let shown = path.to_string_lossy();
    match shown.starts_with('-') {
        true => word(&format!("./{shown}")),
        false => word(&shown),
    }
}

/// A file as a command word: without a slash the shell would search the PATH.
pub fn program(path: &Path) -> String {
    let shown = path.to_string_lossy();
    match shown.contains('/') {
        true => word(&shown),
        false => word(&format!("./{shown}")),
    }
}

/// ` --socket PATH` if it is not the default, to append to a command that queries the daemon.
pub fn socket(path: &Path) -> String {
    match path.as_os_str() == OsStr::new(SOCKET) {
        true => String::new(),
        false => format!(" --socket {}", file(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::{file, program, socket};
    use std::path::Path;

    #[test]
    fn a_shell_reads_each_word_back_as_it_was() {
        for name in [
            "app.iso",
            "sp ace/a b.iso",
            "line\nbreak",
            "it's \"quoted\"",
            "$HOME;`ls`*",
            "ä%",
        ] {
            let printed = format!("printf %s {}", file(Path::new(name)));
            let shell = std::process::Command::new("sh")
                .args(["-c", &printed])
                .output();
            assert_eq!(shell.unwrap().stdout, name.as_bytes(), "{printed}");
        }
        assert_eq!(file(Path::new("runs/app-1.iso")), "runs/app-1.iso");
    }

    #[test]
    fn names_without_a_directory_are_neither_options_nor_looked_for_on_the_path() {
        assert_eq!(file(Path::new("-a.iso")), "./-a.iso");
        assert_eq!(program(Path::new("app")), "./app");
        assert_eq!(program(Path::new("bin/app")), "bin/app");
        assert_eq!(program(Path::new("a b")), "'./a b'");
    }

    #[test]
    fn the_usual_socket_need_not_be_named() {
        assert_eq!(socket(Path::new("/run/isotherm/isotherm.sock")), "");
        assert_eq!(socket(Path::new("/tmp/s")), " --socket /tmp/s");
    }
}
