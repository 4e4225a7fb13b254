//! [`Table`] lists the tables of a profile and names their files. Beside it are the version of the format, the limits of the sizes of
//! files, and the names of temporary files.

/// Version of the format that this crate writes, and the newest that it reads.
pub const FORMAT_VERSION: u64 = 1;

/// Name of the file in a profile that says how it was recorded.
pub const META_FILE: &str = "meta.parquet";

/// Largest file of a profile that is read. A writer begins a new file long before; only the table of sites is one file, which has room for
/// some millions of them.
pub(crate) const TABLE_BYTES: u64 = 1 << 30;
/// Most bytes of a profile that are read: its rows are all in memory at once.
pub(crate) const PROFILE_BYTES: u64 = 16 << 30;

/// Key in each file's own metadata that names the version.
pub(crate) const VERSION_KEY: &str = "isotherm.format_version";
/// Key in each file's own metadata that names the table.
pub(crate) const TABLE_KEY: &str = "isotherm.table";

isotherm_model::variant_words! {
    /// The tables of a profile, with their names in files and in the files' own metadata.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub(crate) enum Table {
        Meta = "meta",
        Sites = "sites",
        Extents = "extents",
        Counts = "counts",
        Sources = "sources",
        Sensitivity = "sensitivity",
        Isolation = "isolation",
        Code = "code",
        Frames = "frames",
        Heat = "heat",
        Resident = "resident",
        Epochs = "epochs",
    }
}

impl Table {
    /// True where the table grows by epochs in numbered files.
    pub(crate) const fn is_log(self) -> bool {
        matches!(
            self,
            Self::Frames | Self::Heat | Self::Resident | Self::Epochs
        )
    }

    /// Name of the only file of a state table, or of file `number` of a log table.
    pub(crate) fn file(self, number: u32) -> String {
        if self.is_log() {
            format!("{}-{number:06}.parquet", self.word())
        } else {
            format!("{}.parquet", self.word())
        }
    }

    /// The table and number of a file of a profile; `None` for every other name.
    pub(crate) fn of_file(name: &str) -> Option<(Self, u32)> {
        let stem = name.strip_suffix(".parquet")?;
        let (table, number) = match stem.split_once('-') {
            None => (stem, 0),
            Some((table, digits)) => (table, digits.parse().ok()?),
        };
        let table = Self::from_word(table)?;
        // Comparing with what would be written refuses `heat-1.parquet`, `heat.parquet` and `meta-000000.parquet`.
        (table.file(number) == name).then_some((table, number))
    }
}

/// Begin and end of the hidden name under which a file is written before it is renamed; between them are random characters. It does not end
/// in `.parquet`, so that no pattern for tables matches it.
pub(crate) fn temporary(file: &str) -> (String, &'static str) {
    (format!(".{file}."), ".tmp")
}

/// True for a temporary name that a kill left behind. Earlier versions wrote `.heat-000000.parquet.tmp`.
pub(crate) fn is_temporary(name: &str) -> bool {
    let is_table = |file: &str| Table::of_file(file).is_some();
    name.strip_prefix('.')
        .and_then(|rest| rest.strip_suffix(".tmp"))
        .is_some_and(|rest| {
            let before = rest.rsplit_once('.').map_or("", |(before, _)| before);
            is_table(rest) || is_table(before)
        })
}

#[cfg(test)]
mod tests {
    use super::{Table, is_temporary, temporary};

    #[test]
    fn a_file_name_names_its_table_and_number_and_nothing_else_does() {
        for table in Table::ALL {
            let number = if table.is_log() { 1_234_567 } else { 0 };
            assert_eq!(Table::of_file(&table.file(number)), Some((table, number)));
            let (begin, end) = temporary(&table.file(number));
            assert!(is_temporary(&format!("{begin}a1B2c3{end}")));
            assert!(is_temporary(&format!(".{}.tmp", table.file(number))));
        }
        for name in [
            "heat.parquet",
            "heat-1.parquet",
            "heat-+00001.parquet",
            "meta-000000.parquet",
            "heat-000001 (1).parquet",
            ".heat-000001.parquet.tmp",
            "notes.txt",
            "",
        ] {
            assert_eq!(Table::of_file(name), None, "{name}");
        }
        assert!(!is_temporary(".bashrc.tmp"));
    }
}
