//! [`PagedRun`] reports a run with memory paged out, as JSON and in one sentence. The profile of the run keeps some of its sums, which a
//! report of the profile shows as a note.

use std::collections::BTreeMap;

use isotherm_model::batch::Count;
use isotherm_model::units::{Bytes, Nanos};
use serde::Serialize;

use crate::words::{counted, grouped, percent, share};

/// Names of counts of a profile that its report puts into words.
const MEAN: &str = "paged_mean_bytes";
const MEAN_SAVED: &str = "paged_mean_saved_bytes";
const STALLED: &str = "paged_stalled_ns";

/// The sums of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PagedRun {
    /// The policy's name.
    pub policy: String,
    /// True if nothing really left memory.
    pub dry_run: bool,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Epochs in which the policy decided.
    pub epochs: u64,
    /// The program's memory, in memory and out, as the mean over the run.
    pub mean_bytes: u64,
    /// The part of it that was in memory, as the mean over the run.
    pub mean_present_bytes: u64,
    /// The memory that it took, in memory and compressed, as the mean over the run.
    pub mean_taken_bytes: u64,
    /// Most bytes that were out at the end of an epoch.
    pub most_out_bytes: u64,
    /// Bytes that this memory took where it was compressed; 0 on a disk.
    pub most_out_taken_bytes: u64,
    /// Bytes that left memory in all.
    pub left_bytes: u64,
    /// Of those, bytes that the kernel chose, in its own order.
    pub kernel_reclaimed_bytes: u64,
    /// Bytes that came back because the program touched them.
    pub returned_bytes: u64,
    /// Bytes that were brought back ahead of a touch.
    pub brought_back_bytes: u64,
    /// Units that were paged out and needed again soon.
    pub mistakes: u64,
    /// Time for which the program waited for pages that came back, in nanoseconds, in all threads.
    pub stalled_ns: u64,
    /// Time from the program's start to its end, in nanoseconds.
    pub took_ns: u64,
    /// Measured time of a page of 4 KiB on its way back, in nanoseconds.
    pub back_ns: u64,
    /// Budget of lost time, as a share of all.
    pub slowdown_budget: f64,
    /// Bytes that could not be moved, by the reason: the most in an epoch.
    pub not_moved: BTreeMap<String, u64>,
}

impl PagedRun {
    /// Share of its memory in which the program ran; `None` where it was not seen.
    #[must_use]
    pub fn memory_share(&self) -> Option<f64> {
        (self.mean_bytes > 0).then(|| share(self.mean_taken_bytes, self.mean_bytes))
    }

    /// Share by which the program was slower than without page-out: the time that it waited over the rest. Of several threads, of which
    /// others may have worked meanwhile, an upper bound.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        let rest = self.took_ns.saturating_sub(self.stalled_ns);
        self.stalled_ns as f64 / rest.max(1) as f64
    }

    /// Bytes of memory that were saved, net of what pages take compressed: the mean over the run.
    #[must_use]
    pub const fn saved_bytes(&self) -> u64 {
        self.mean_bytes.saturating_sub(self.mean_taken_bytes)
    }

    /// The sums that a profile of the run keeps; none where nothing left memory.
    #[must_use]
    pub fn counts(&self) -> Vec<Count> {
        let count = |name: &str, value| Count::of_run(name, value);
        if self.dry_run || self.left_bytes == 0 {
            return Vec::new();
        }
        vec![
            count(MEAN, self.mean_bytes),
            count(MEAN_SAVED, self.saved_bytes()),
            count("paged_left_bytes", self.left_bytes),
            count("paged_returned_bytes", self.returned_bytes),
            count(STALLED, self.stalled_ns),
        ]
    }

    /// A sentence: in how much of its memory the program ran, how much slower, and by which moves.
    #[must_use]
    pub fn in_words(&self, program: &str) -> String {
        let Some(memory) = self.memory_share() else {
            return format!("{program} ended before its memory was seen; nothing was paged out");
        };
        if self.dry_run {
            return format!(
                "dry run: of {} of {program}, {} would have been paged out in {}",
                Bytes(self.mean_bytes),
                Bytes(self.left_bytes),
                counted(self.epochs, "epoch")
            );
        }
        if self.left_bytes == 0 {
            return format!(
                "{program} ran in all of its memory, {}: nothing was paged out{}",
                Bytes(self.mean_bytes),
                self.why_not()
            );
        }
        let pages = self.returned_bytes / 4096;
        let mistakes = match self.mistakes {
            0 => String::new(),
            mistakes => format!("; {} needed again soon", counted(mistakes, "unit")),
        };
        format!(
            "{program} ran in {} of its memory, at most {} slower: {} on average took {}, {} less; {} left memory, up to {} at a time, which \
             took {}; {} pages came back in {} of waiting, {} each{mistakes}",
            percent(memory),
            percent(self.slowdown()),
            Bytes(self.mean_bytes),
            Bytes(self.mean_taken_bytes),
            Bytes(self.saved_bytes()),
            Bytes(self.left_bytes),
            Bytes(self.most_out_bytes),
            Bytes(self.most_out_taken_bytes),
            grouped(pages),
            Nanos(self.stalled_ns),
            Nanos(self.back_ns),
        )
    }

    fn why_not(&self) -> String {
        let most = self.not_moved.iter().max_by_key(|(_, bytes)| **bytes);
        most.map_or_else(String::new, |(why, bytes)| {
            format!(" ({} stayed: {why})", Bytes(*bytes))
        })
    }
}

/// A sentence on the memory that was paged out in a profile's run; `None` where none was.
pub(crate) fn note(counts: &[Count]) -> Option<String> {
    let value = |name: &str| counts.iter().find(|count| count.name == name);
    let [all, saved, stalled] =
        [MEAN, MEAN_SAVED, STALLED].map(|name| value(name).map(|it| it.value));
    let (all, saved, stalled) = (all?, saved?, stalled?);
    Some(format!(
        "Of {} of memory on average, page-out saved {} ({}), net of what pages take compressed; the program waited {} for pages that came \
         back.",
        Bytes(all),
        Bytes(saved),
        percent(share(saved, all)),
        Nanos(stalled)
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{PagedRun, note};

    fn run() -> PagedRun {
        PagedRun {
            policy: "payback".into(),
            unit_bytes: 2 << 20,
            epochs: 9,
            mean_bytes: 400 << 20,
            mean_present_bytes: 160 << 20,
            mean_taken_bytes: 208 << 20,
            most_out_bytes: 256 << 20,
            most_out_taken_bytes: 96 << 20,
            left_bytes: 300 << 20,
            returned_bytes: 8 << 20,
            mistakes: 1,
            stalled_ns: 18_000_000,
            took_ns: 1_018_000_000,
            back_ns: 8_000,
            ..PagedRun::default()
        }
    }

    #[test]
    fn the_sentence_says_how_much_memory_and_how_much_slower() {
        assert_eq!(
            run().in_words("graph"),
            "graph ran in 52 % of its memory, at most 1.8 % slower: 400 MiB on average took 208 MiB, 192 MiB less; 300 MiB left \
             memory, up to 256 MiB at a time, which took 96 MiB; 2,048 pages came back in 18.0 ms of waiting, 8.0 us each; 1 unit needed \
             again soon"
        );
    }

    #[test]
    fn a_profile_of_the_run_says_what_was_saved_and_what_that_cost() {
        assert_eq!(
            note(&run().counts()).as_deref(),
            Some(
                "Of 400 MiB of memory on average, page-out saved 192 MiB (48 %), net of what pages take compressed; the program waited \
                 18.0 ms for pages that came back."
            )
        );
        let dry = PagedRun {
            dry_run: true,
            ..run()
        };
        assert_eq!(note(&dry.counts()), None);
    }

    #[test]
    fn a_run_in_which_nothing_left_says_why() {
        let run = PagedRun {
            left_bytes: 0,
            not_moved: BTreeMap::from([("locked in memory".into(), 4096)]),
            ..run()
        };
        assert_eq!(
            run.in_words("graph"),
            "graph ran in all of its memory, 400 MiB: nothing was paged out (4 KiB stayed: locked in memory)"
        );
        let unseen = PagedRun::default().in_words("graph");
        assert!(unseen.contains("before its memory was seen"), "{unseen}");
    }
}
