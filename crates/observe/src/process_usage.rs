//! `ProcessStat` reads the name, parent, processor time, faults and memory of a process from `/proc/PID/stat`; `is_worth` is TMP's filter
//! of processes that are worth the cost of observing them, by processor time and memory (Choi et al., "Dancing in the Dark", section III).

use std::path::Path;

use isotherm_model::units::Nanos;

/// A process is not worth its cost if it uses less processor time than this share ...
const CPU_PERCENT: u64 = 5;

/// ... and less of the machine's memory than this.
const MEMORY_PERCENT: u64 = 10;

/// Whether a process is worth its cost, given its processor time over a span (None: it was never
/// measured before) and its resident bytes out of the machine's.
pub(crate) fn is_worth(cpu: Option<(u64, Nanos)>, resident: u64, total: u64) -> bool {
    let idle = cpu.is_some_and(|(spent, span)| {
        u128::from(spent) * 100 < u128::from(span.0) * u128::from(CPU_PERCENT)
    });
    let small = u128::from(resident) * 100 < u128::from(total) * u128::from(MEMORY_PERCENT);
    !(idle && small)
}

/// Longest name of a program kept, in bytes.
const NAME_AT_MOST: usize = 64;

/// The fields in use of `/proc/PID/stat`.
#[derive(Debug)]
pub(crate) struct ProcessStat {
    pub(crate) name: String,
    pub(crate) parent: u32,
    /// Page faults that waited for a disk or for swap.
    pub(crate) major_faults: u64,
    /// Processor time of the program's own code, in steps of the kernel's clock.
    pub(crate) own_time: Nanos,
    /// Own time, and the time of the kernel for the process.
    pub(crate) cpu_time: Nanos,
    /// When it started, in ticks.
    pub(crate) start: u64,
    /// Bytes resident.
    pub(crate) resident: u64,
}

impl ProcessStat {
    /// Reads the fields of a process found under this directory (`/proc`); `None` where it has ended.
    pub(crate) fn read(proc_root: &Path, pid: u32) -> Option<Self> {
        let text = std::fs::read(proc_root.join(format!("{pid}/stat"))).ok()?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    /// Parses `4711 (a name) S 1 ...`. The name may hold any text, brackets and line feeds
    /// included, so it ends at the last bracket.
    fn parse(text: &str) -> Option<Self> {
        let (before, rest) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The field numbers of proc_pid_stat(5), where the name is the second field.
        let word = |number: usize| words.get(number - 3)?.parse::<u64>().ok();
        let name = name.chars().filter(|c| !c.is_control());
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let time = |ticks: u64| Nanos(ticks.saturating_mul(tick));
        Some(Self {
            name: name.take(NAME_AT_MOST).collect(),
            parent: u32::try_from(word(4)?).ok()?,
            major_faults: word(12)?,
            own_time: time(word(14)?),
            cpu_time: time(word(14)?.saturating_add(word(15)?)),
            start: word(22)?,
            resident: word(24)?.saturating_mul(rustix::param::page_size() as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{ProcessStat, is_worth};
    use isotherm_model::units::Nanos;

    #[test]
    fn only_a_process_both_idle_and_small_is_left_alone() {
        let second = Nanos(1_000_000_000);
        let cpu = |percent: u64| Some((percent * 10_000_000, second));
        assert!(!is_worth(cpu(4), 9, 100));
        assert!(is_worth(cpu(5), 9, 100));
        assert!(is_worth(cpu(4), 10, 100));
        assert!(is_worth(None, 0, 100), "not looked at before");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,300}") {
            let _ = ProcessStat::parse(&text);
        }
    }
}
