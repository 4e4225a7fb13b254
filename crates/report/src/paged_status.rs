//! [`PagedStatus`] is the part of the daemon's status on paged-out memory and the time that it costs, with its lines for a terminal.

use isotherm_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::words::{counted, percent, printable};

/// Memory that is paged out, and what that costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PagedStatus {
    /// Bytes of watched processes that are out.
    pub out_bytes: u64,
    /// Memory that these take, compressed; 0 on a disk.
    pub out_taken_bytes: u64,
    /// Bytes that left memory since the start.
    pub left_bytes: u64,
    /// Bytes that came back because a program touched them, since the start.
    pub returned_bytes: u64,
    /// Bytes that were brought back before a touch, since the start.
    pub brought_back_bytes: u64,
    /// Units that returned soon after they had left, since the start.
    pub mistakes: u64,
    /// Time that programs waited for pages that came back, since the start.
    pub stalled_ns: u64,
    /// Time that programs waited in the last epoch, as a share of its time.
    pub stalled_share: f64,
    /// The share of the time that programs may lose.
    pub slowdown_budget: f64,
    /// True while the budget is used up, and nothing leaves.
    pub is_overdrawn: bool,
    /// True where nothing more leaves because swap has no room.
    #[serde(default)]
    pub lacks_swap: bool,
    /// Measured time of a page of 4 KiB on its way back.
    pub back_ns: u64,
    /// Bytes that the kernel reclaimed of control groups near their limit, because it was asked to, since the start.
    pub reclaimed_bytes: u64,
    /// Why it reclaimed less than it was asked for, last; empty where it did not.
    pub reclaim_refused: String,
}

impl PagedStatus {
    /// Bytes of memory that are saved: what is out, less what it takes compressed.
    #[must_use]
    pub const fn saved_bytes(&self) -> u64 {
        self.out_bytes.saturating_sub(self.out_taken_bytes)
    }

    /// Lines for a terminal: the paged-out and the saved memory, the memory that came back, and the time that it cost.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let overdrawn = match self.is_overdrawn {
            true => ", used up: nothing leaves",
            false => "",
        };
        let mut lines = vec![
            format!(
                "paged out: {}, which take {}: {} saved",
                Bytes(self.out_bytes),
                Bytes(self.out_taken_bytes),
                Bytes(self.saved_bytes())
            ),
            format!(
                "since the start: {} left, {} came back in {} of waiting, {} soon",
                Bytes(self.left_bytes),
                Bytes(self.returned_bytes),
                Nanos(self.stalled_ns),
                counted(self.mistakes, "unit")
            ),
            format!(
                "time lost in the last epoch: {} (budget {}{overdrawn})",
                percent(self.stalled_share),
                percent(self.slowdown_budget)
            ),
        ];
        if self.lacks_swap {
            lines.push("swap has no room: nothing leaves".to_owned());
        }
        lines.extend(self.reclaimed());
        lines
    }

    /// The bytes that the kernel reclaimed on request, or why it did not.
    fn reclaimed(&self) -> Option<String> {
        let why = match self.reclaim_refused.as_str() {
            "" => String::new(),
            why => format!(" ({})", printable(why)),
        };
        let bytes = Bytes(self.reclaimed_bytes);
        (bytes > Bytes::ZERO || !why.is_empty()).then(|| {
            format!("{bytes} reclaimed by the kernel in control groups near their limit{why}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PagedStatus;

    #[test]
    fn the_lines_say_what_is_out_and_what_it_costs() {
        let status = PagedStatus {
            out_bytes: 256 << 20,
            out_taken_bytes: 96 << 20,
            left_bytes: 300 << 20,
            returned_bytes: 8 << 20,
            mistakes: 1,
            stalled_ns: 18_000_000,
            stalled_share: 0.001,
            slowdown_budget: 0.02,
            is_overdrawn: true,
            ..PagedStatus::default()
        };
        assert_eq!(
            status.lines(),
            [
                "paged out: 256 MiB, which take 96 MiB: 160 MiB saved",
                "since the start: 300 MiB left, 8 MiB came back in 18.0 ms of waiting, 1 unit soon",
                "time lost in the last epoch: 0.1 % (budget 2.0 %, used up: nothing leaves)",
            ]
        );
        let refused = PagedStatus {
            lacks_swap: true,
            reclaimed_bytes: 4 << 20,
            reclaim_refused: "read-only".into(),
            ..status
        };
        assert_eq!(
            refused.lines()[3..],
            [
                "swap has no room: nothing leaves",
                "4 MiB reclaimed by the kernel in control groups near their limit (read-only)",
            ]
        );
    }

    #[test]
    fn pages_that_take_more_compressed_save_nothing() {
        let status = PagedStatus {
            out_bytes: 4096,
            out_taken_bytes: 4200,
            ..PagedStatus::default()
        };
        assert_eq!(status.saved_bytes(), 0);
    }
}
