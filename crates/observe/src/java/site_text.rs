//! `parse` turns the text of a Java site ([`isotherm_abi::java::JavaSiteRecord::text`]) into a `ParsedSite`: a site of a profile, with the
//! allocated class, the method and the bytecode index, of which a run counts the different ones.
//!
//! The site's id is a hash of class, methods, descriptors and bytecode indices, so it stays the same in every build that leaves these
//! unchanged. Lines are for people only.

use isotherm_abi::hash::{SiteHashKind, SiteHasher};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};

/// Prefixes of the packages of the platform: the caller in the program's own code says more.
const PLATFORM: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// A site, and what Table 3 of the Cross-Layer paper counts of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParsedSite {
    /// The site; all its sums are zero.
    pub(super) site: Site,
    /// The class that it allocates.
    pub(super) class: String,
    /// The method that allocates.
    pub(super) method: String,
    /// The place of the allocation in the method.
    pub(super) bytecode_index: u64,
}

/// Reads a text. Parts that are missing are empty.
pub(super) fn parse(text: &str) -> ParsedSite {
    let mut lines = text.lines();
    let class = lines.next().unwrap_or_default().to_owned();
    let mut hasher = SiteHasher::new(SiteHashKind::Java).frame(class.as_bytes(), 0);
    let mut frames = Vec::new();
    for line in lines.take(isotherm_abi::MAX_DEPTH) {
        let mut fields = line.split('\t');
        let mut field = || fields.next().unwrap_or_default();
        let (method, descriptor, index, file, number) =
            (field(), field(), field(), field(), field());
        // Native code has -1.
        let index = index.parse::<i64>().unwrap_or(-1) as u64;
        hasher = hasher
            .frame(method.as_bytes(), index)
            .frame(descriptor.as_bytes(), 0);
        frames.push(frame(method, index, (file, number)));
    }
    let (method, bytecode_index) = frames.first().map_or((String::new(), 0), |frame: &Frame| {
        (frame.function.clone().unwrap_or_default(), frame.offset)
    });
    // The class is shown where the program's own code asks for the object, which platform code may allocate.
    let is_own = |frame: &Frame| !is_platform(frame.function.as_deref().unwrap_or_default());
    let own = frames.iter().position(is_own).unwrap_or(0);
    if let Some(frame) = frames.get_mut(own) {
        frame.variable = Some(format!("new {class}"));
    }
    ParsedSite {
        site: Site {
            frames: frames.into(),
            ..Site::new(SiteId(hasher.finish()), SiteKind::Java)
        },
        class,
        method,
        bytecode_index,
    }
}

fn is_platform(method: &str) -> bool {
    PLATFORM.iter().any(|package| method.starts_with(package))
}

fn frame(method: &str, index: u64, (file, line): (&str, &str)) -> Frame {
    // As a JDK's own sources are arranged: java/util/HashMap.java.
    let class = method.rsplit_once('.').map_or("", |(class, _)| class);
    let package = class.rsplit_once('.').map(|(package, _)| package);
    let folder = package.map_or(String::new(), |package| package.replace('.', "/") + "/");
    Frame {
        offset: index,
        function: Some(method.to_owned()),
        file: (!file.is_empty()).then(|| folder + file),
        line: line.parse().ok(),
        ..Frame::default()
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use isotherm_model::site::SiteKind;

    const TEXT: &str = "java.lang.Object[]\n\
        java.util.ArrayList.grow\t(I)V\t35\tArrayList.java\t237\n\
        app.Main.load\t(II)V\t7\tMain.java\t12\n\
        app.Main.native\t()V\t-1\t\t";

    #[test]
    fn a_site_shows_methods_lines_and_the_class_where_the_program_asks_for_it() {
        let parsed = parse(TEXT);
        assert_eq!(parsed.site.kind, SiteKind::Java);
        assert_eq!(
            parsed.site.label(),
            "java.util.ArrayList.grow (ArrayList.java:237) < app.Main.load (Main.java:12: new java.lang.Object[]) \
             < app.Main.native"
        );
        assert_eq!(
            (parsed.class.as_str(), parsed.method.as_str()),
            ("java.lang.Object[]", "java.util.ArrayList.grow")
        );
        assert_eq!(parsed.bytecode_index, 35);
        assert_eq!(parsed.site.frames[1].file.as_deref(), Some("app/Main.java"));
    }

    #[test]
    fn an_id_depends_on_methods_and_bytecode_and_not_on_lines_and_files() {
        let id = |text: &str| parse(text).site.id;
        let moved = TEXT
            .replace("237", "999")
            .replace("Main.java\t12", "Main.java\t14");
        assert_eq!(id(TEXT), id(&moved));
        for (from, to) in [
            ("Object[]", "String[]"),
            ("grow", "copy"),
            ("(II)V", "(IJ)V"),
            ("\t7\t", "\t8\t"),
        ] {
            assert_ne!(id(TEXT), id(&TEXT.replace(from, to)), "{from}");
        }
    }

    #[test]
    fn any_text_is_a_site() {
        for text in [
            "",
            "\n",
            "int[]",
            "a\nb",
            "a\nb\tc\td\te\tf\tg\th",
            "\t\n\t\n",
        ] {
            let parsed = parse(text);
            assert!(parsed.site.frames.len() <= 2, "{text:?}");
        }
    }
}
