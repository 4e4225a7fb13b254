//! Finds the options of the Java virtual machine in a `java` command line: those before the program and its arguments. `coloured_jvm` looks
//! through them to refuse garbage collectors whose heap has no colours (all but G1).
//!
//! ```text
//! java -Xmx1g -cp app.jar:lib.jar  app.Main  -XX:+UseSerialGC
//!      options                     program   an argument of it, whatever it looks like
//! ```

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Options whose value is the next word (`java --help`).
const WITH_VALUE: [&str; 16] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-reads",
    "--add-exports",
    "--add-opens",
    "--limit-modules",
    "--patch-module",
    "-d",
    "--source",
    "--enable-native-access",
    "--describe-module",
];
/// Options that name the program.
const OF_PROGRAM: [&str; 3] = ["-jar", "-m", "--module"];

/// The options before the class, module or archive of the program, without their values.
pub(crate) fn of_machine(arguments: &[OsString]) -> impl Iterator<Item = &OsString> {
    let is = |words: &[&str], word: &OsString| words.iter().any(|it| word == it);
    let mut words = arguments.iter();
    std::iter::from_fn(move || {
        let option = words.next()?;
        let first = option.as_os_str().as_bytes().first();
        // A file of options begins with `@`.
        if is(&OF_PROGRAM, option) || !matches!(first, Some(b'-' | b'@')) {
            words = [].iter();
            return None;
        }
        if is(&WITH_VALUE, option) {
            words.next();
        }
        Some(option)
    })
}

#[cfg(test)]
mod tests {
    use super::of_machine;
    use std::ffi::OsString;

    fn options(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let options = of_machine(&words).map(|word| word.to_str().expect("text"));
        options.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_end_where_the_program_is_named() {
        for (line, expected) in [
            ("-Xmx1g -jar app.jar -XX:+UseSerialGC", "-Xmx1g"),
            ("-cp app.jar app.Main -XX:+UseSerialGC", "-cp"),
            ("-cp -weird -Xint app.Main --class-path=x", "-cp -Xint"),
            ("--class-path=a app.Main -d", "--class-path=a"),
            ("--module-path mods -m app/app.Main -Xint", "--module-path"),
            ("@options -Xint app.Main", "@options -Xint"),
            ("App.java -Xint", ""),
            ("-version", "-version"),
            ("-cp", "-cp"),
        ] {
            assert_eq!(options(line), expected, "{line}");
        }
    }
}
