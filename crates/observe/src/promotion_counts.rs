//! [`PromotionCounts`] reads the kernel's counts of its own promotions, demotions and hint faults from `/proc/vmstat`, for the daemon.

use std::path::Path;

use isotherm_model::units::Bytes;

/// Counts since the machine started; counters that the kernel lacks are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromotionCounts {
    /// Page faults of pages that the kernel had unmapped (`numa_hint_faults`).
    pub hint_faults: u64,
    /// Bytes promoted (`pgpromote_success`).
    pub promoted: Bytes,
    /// Bytes demoted by reclaim (`pgdemote_kswapd`, `pgdemote_direct`, `pgdemote_khugepaged`, `pgdemote_proactive`).
    pub demoted: Bytes,
}

impl PromotionCounts {
    /// Reads the counts below this root; pages have `page` bytes. All are 0 where the file cannot be read.
    #[must_use]
    pub fn read(root: &Path, page: Bytes) -> Self {
        let text = std::fs::read_to_string(root.join("proc/vmstat")).unwrap_or_default();
        let mut counts = Self::default();
        for line in text.lines() {
            let Some((name, number)) = line.split_once(' ') else {
                continue;
            };
            let number: u64 = number.trim().parse().unwrap_or(0);
            let bytes = Bytes(number.saturating_mul(page.0));
            match name {
                "numa_hint_faults" => counts.hint_faults = number,
                "pgpromote_success" => counts.promoted = bytes,
                name if name.starts_with("pgdemote_") => {
                    counts.demoted = Bytes(counts.demoted.0.saturating_add(bytes.0));
                }
                _ => {}
            }
        }
        counts
    }

    /// The counts since an earlier reading.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            hint_faults: self.hint_faults.saturating_sub(earlier.hint_faults),
            promoted: self.promoted.saturating_sub(earlier.promoted),
            demoted: self.demoted.saturating_sub(earlier.demoted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PromotionCounts;
    use isotherm_model::units::Bytes;

    #[test]
    fn counters_are_found_by_name_and_absent_ones_are_zero() {
        let root = tempfile::tempdir().expect("a directory");
        let read = || PromotionCounts::read(root.path(), Bytes(4096));
        assert_eq!(read(), PromotionCounts::default());
        std::fs::create_dir_all(root.path().join("proc")).expect("made");
        let write = |text: &str| std::fs::write(root.path().join("proc/vmstat"), text);
        write("numa_hint_faults 7\nnuma_hint_faults_local 5\npgpromote_success 10\npgpromote_candidate 90\n")
            .expect("written");
        let first = read();
        assert_eq!((first.hint_faults, first.promoted), (7, Bytes(40960)));
        assert_eq!(first.demoted, Bytes::ZERO);
        write("numa_hint_faults 9\npgpromote_success 11\npgdemote_kswapd 2\npgdemote_direct 1\nbad\npgdemote_x y\n")
            .expect("written");
        let since = read().since(first);
        assert_eq!((since.hint_faults, since.promoted), (2, Bytes(4096)));
        assert_eq!(since.demoted, Bytes(3 * 4096));
        assert_eq!(first.since(read()), PromotionCounts::default());
    }
}
