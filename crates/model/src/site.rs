//! [`Site`] is an allocation site with the numbers of its data: a code location, with calling context ([`Frame`]s), that allocates data, or
//! other data with a name, such as a variable or a mapping ([`SiteKind`]); the shared arena and unattributed memory are two sites with
//! special ids. [`SiteId`] is a site's name in plans and profiles, [`CallerId`] that of a direct caller.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

/// The name of an allocation site: a hash of its frames by (module build-id, offset), the same in
/// every run and on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u64);

impl SiteId {
    /// Memory that no site allocated: stacks, program data, libraries, files.
    pub const UNATTRIBUTED: Self = Self(0);
    /// The arena that small and rare sites share.
    pub const SHARED: Self = Self(1);

    /// True for a site that can be placed. Every output counts these sites; the shared arena is
    /// one.
    #[must_use]
    pub fn is_placeable(self) -> bool {
        self != Self::UNATTRIBUTED
    }
}

impl fmt::Display for SiteId {
    /// Sixteen hexadecimal digits; `shared` and `unattributed` for the two special ids.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UNATTRIBUTED => f.pad("unattributed"),
            Self::SHARED => f.pad("shared"),
            Self(hash) => write!(f, "{hash:016x}"),
        }
    }
}

/// A text that names no site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a site (1 to 16 hexadecimal digits, or `shared`)")]
pub struct SiteIdError(String);

impl FromStr for SiteId {
    type Err = SiteIdError;

    fn from_str(text: &str) -> Result<Self, SiteIdError> {
        match text {
            "unattributed" => Ok(Self::UNATTRIBUTED),
            "shared" => Ok(Self::SHARED),
            _ if !text.is_empty()
                && text.len() <= 16
                && text.bytes().all(|b| b.is_ascii_hexdigit()) =>
            {
                u64::from_str_radix(text, 16)
                    .map(Self)
                    .map_err(|_| SiteIdError(text.to_owned()))
            }
            _ => Err(SiteIdError(text.to_owned())),
        }
    }
}

/// The name of a direct caller: the id of a site whose only frame is its return address. Sites with
/// the same innermost frame share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId(pub u64);

impl fmt::Display for CallerId {
    /// Sixteen hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

variant_words! {
    /// The kind of memory that a site allocates.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SiteKind {
        /// Heap allocations.
        Heap = "heap",
        /// Large anonymous mappings of the program.
        Mapping = "mapping",
        /// Heap allocations of a call that the compiler named.
        Described = "described",
        /// Static data of the program or a library: a variable, or all small ones of a segment.
        Static = "static",
        /// Data that the program names itself, allocated or registered.
        Named = "named",
        /// Objects that a place in a Java method allocates.
        Java = "java",
        /// Memory of a process that ran without the runtime, by the name of its mapping; no run can place it.
        Region = "region",
        /// The arena shared by small and rare sites.
        Shared = "shared",
        /// Everything else.
        Unattributed = "unattributed",
    }
}

/// One caller of a calling context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Path of the module; empty for code outside every module; for a Python function its source file. Shared, as the build-id is: the
    /// fifty thousand frames of a large program name a hundred modules.
    pub module: Arc<str>,
    /// GNU build-id in hexadecimal, where the module has one.
    pub build_id: Option<Arc<str>>,
    /// Return address as an ELF virtual address of the module; for a Python function a number from its name and the line in it.
    pub offset: u64,
    /// Function, where symbols were found.
    pub function: Option<String>,
    /// Source file, where debugging information was found.
    pub file: Option<String>,
    /// Line in `file`.
    pub line: Option<u32>,
    /// Column in the line, where the compiler recorded it: distinguishes calls on one line.
    pub column: Option<u32>,
    /// Line in `file` where the function begins. A line number relative to it survives edits above
    /// the function.
    pub function_line: Option<u32>,
    /// The variable that receives the call's result, where the source is unambiguous:
    /// `graph->edges`.
    pub variable: Option<String>,
}

impl Frame {
    /// True for a function that an interpreter runs: its source file stands for its module, and the offset for the line in it.
    #[must_use]
    pub fn is_source(&self) -> bool {
        !self.module.is_empty() && self.file.as_deref() == Some(&*self.module)
    }
}

impl fmt::Display for Frame {
    /// The most precise known form: `function (file:line: variable)`, `function (file:line)`,
    /// `function (module)`, `function`, `module+0x1234`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, &self.file, self.line) {
            (Some(function), Some(file), Some(line)) => {
                let variable = self.variable.as_ref();
                let variable = variable.map_or(String::new(), |name| format!(": {name}"));
                write!(f, "{function} ({}:{line}{variable})", file_name(file))
            }
            (Some(function), _, _) if self.module.is_empty() => f.write_str(function),
            (Some(function), _, _) => write!(f, "{function} ({})", file_name(&self.module)),
            _ if self.module.is_empty() => write!(f, "0x{:x}", self.offset),
            _ => write!(f, "{}+0x{:x}", file_name(&self.module), self.offset),
        }
    }
}

/// The text after the last slash. Found by bytes, which is faster than by characters: a profile has fifty thousand frames.
fn file_name(path: &str) -> &str {
    let slash = path.bytes().rposition(|byte| byte == b'/');
    slash.map_or(path, |slash| &path[slash + 1..])
}

/// An allocation site and the known numbers of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its id.
    pub id: SiteId,
    /// The kind of memory that it allocates.
    pub kind: SiteKind,
    /// Callers, innermost first; empty for the two special ids. Shared by reference, because a
    /// large program has ten thousand sites, whose numbers are passed on in every epoch.
    pub frames: Arc<[Frame]>,
    /// Allocations over the whole run.
    pub allocations: u64,
    /// Bytes requested over the whole run.
    pub requested: crate::units::Bytes,
    /// Most bytes requested and not yet freed at one time; zero where it is unknown (small sites
    /// that share an arena).
    pub peak_requested: crate::units::Bytes,
    /// Most bytes resident at one time, the weight of the policies (MemBrain, section III).
    pub peak_rss: crate::units::Bytes,
    /// Position in the order of first allocation over the run, from 0, which first touch follows.
    /// Attribution sets it; observers leave it at zero.
    pub first_seen: u32,
}

impl Site {
    /// A site of which only the id is known.
    #[must_use]
    pub fn nameless(id: SiteId) -> Self {
        let kind = match id {
            SiteId::UNATTRIBUTED => SiteKind::Unattributed,
            SiteId::SHARED => SiteKind::Shared,
            _ => SiteKind::Heap,
        };
        Self::new(id, kind)
    }

    /// A site without any numbers yet.
    #[must_use]
    pub fn new(id: SiteId, kind: SiteKind) -> Self {
        Self {
            id,
            kind,
            frames: Arc::default(),
            allocations: 0,
            requested: crate::units::Bytes::ZERO,
            peak_requested: crate::units::Bytes::ZERO,
            peak_rss: crate::units::Bytes::ZERO,
            first_seen: 0,
        }
    }

    /// One line for people: the frames from the allocation outwards, joined by ` < `.
    #[must_use]
    pub fn label(&self) -> String {
        match self.kind {
            SiteKind::Shared => "small and rare sites (shared arena)".to_owned(),
            SiteKind::Unattributed => "stacks, program data, libraries, files".to_owned(),
            SiteKind::Heap
            | SiteKind::Mapping
            | SiteKind::Described
            | SiteKind::Static
            | SiteKind::Named
            | SiteKind::Java
            | SiteKind::Region => {
                let mut label = String::with_capacity(32 * self.frames.len());
                for (depth, frame) in self.frames.iter().enumerate() {
                    let between = if depth == 0 { "" } else { " < " };
                    // Writing into a String cannot fail.
                    let _ = write!(label, "{between}{frame}");
                }
                label
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, SiteId};

    #[test]
    fn a_site_prints_as_it_is_read() {
        for id in [SiteId(0), SiteId(1), SiteId(0xabc), SiteId(u64::MAX)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in ["", "xyz", "-1", "+1", "12345678901234567"] {
            assert!(text.parse::<SiteId>().is_err(), "{text} was taken");
        }
    }

    #[test]
    fn a_frame_shows_the_best_that_is_known() {
        let mut frame = Frame {
            module: "/bin/app".into(),
            offset: 0x10,
            ..Frame::default()
        };
        assert_eq!(frame.to_string(), "app+0x10");
        frame.function = Some("load".into());
        assert_eq!(frame.to_string(), "load (app)");
        frame.file = Some("src/load.c".into());
        frame.line = Some(7);
        assert_eq!(frame.to_string(), "load (load.c:7)");
        frame.variable = Some("edges".into());
        assert_eq!(frame.to_string(), "load (load.c:7: edges)");
        let imported = Frame {
            function: Some("load".into()),
            ..Frame::default()
        };
        assert_eq!(imported.to_string(), "load");
    }
}
