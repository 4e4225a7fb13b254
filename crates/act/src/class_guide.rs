//! [`replace`] replaces the guide file of a Java heap whose classes change their colours while the program runs (`docs/java-heap.md`);
//! [`text`] makes its content, which names the cold classes.
//!
//! The virtual machine reads the file again when another file has its name, so each version is written completely beside it and renamed.
//!
//! ```text
//! # classes that are cold
//! class app.Index$Old cold
//! class app.Record[] cold
//! ```

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Most bytes of a name: lines of the file are shorter than 4,096 bytes.
const NAME_AT_MOST: usize = 4_000;
/// Types whose arrays have no class with a colour.
const PRIMITIVES: [&str; 8] = [
    "boolean", "byte", "char", "short", "int", "long", "float", "double",
];

/// True for a class that a guide file can name: the virtual machine refuses a file with other names, and the classes of lambdas have other
/// names in each run.
#[must_use]
pub fn can_name(class: &str) -> bool {
    let element = class.trim_end_matches("[]");
    let divides =
        |c: char| c.is_ascii_whitespace() || c.is_control() || matches!(c, '#' | '[' | ']' | '/');
    !element.is_empty()
        && class.len() <= NAME_AT_MOST
        && !element.contains(divides)
        && !element.contains("$$Lambda")
        && !PRIMITIVES.contains(&element)
}

/// The text of a file in which these classes are cold. Classes that it cannot name are left out.
#[must_use]
pub fn text<'a>(cold: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = "# classes that are cold\n".to_owned();
    for class in cold.into_iter().filter(|class| can_name(class)) {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "class {class} cold");
    }
    text
}

/// Replaces the guide file at this path, which a virtual machine reads again while it runs, by one with this text.
///
/// # Errors
/// There is no room, or the directory has gone.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, text)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::{can_name, replace, text};
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn names_that_the_virtual_machine_would_refuse_are_not_named() {
        for class in ["A", "app.Index$Old", "app.Record[]", "app.Record[][]", "Ä"] {
            assert!(can_name(class), "{class}");
        }
        let long = "x".repeat(5000);
        let others = [
            "",
            "[]",
            "int[]",
            "byte[][]",
            "a b",
            "a#b",
            "a[",
            "[]a",
            "app.Main$$Lambda$14/0x0008",
            "app.Hidden/0x0008",
            "a\u{7f}",
            &long,
        ];
        for class in others {
            assert!(!can_name(class), "{class}");
        }
    }

    #[test]
    fn a_text_has_a_line_for_each_class() {
        assert_eq!(
            text(["A", "int[]", "B[]"]),
            "# classes that are cold\nclass A cold\nclass B[] cold\n"
        );
    }

    #[test]
    fn a_guide_is_replaced_by_another_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("guide");
        fs::write(&path, "").expect("writes");
        let before = fs::metadata(&path).expect("exists").ino();
        replace(&path, "class A cold\n").expect("replaces");
        let after = fs::metadata(&path).expect("exists");
        assert_ne!(after.ino(), before);
        assert_eq!(after.mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).expect("reads"), "class A cold\n");
        let files = fs::read_dir(directory.path()).expect("reads").count();
        assert_eq!(files, 1);
        drop(directory);
        replace(&path, "").expect_err("the directory has gone");
    }
}
