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

/// Processor time in nanoseconds and resident bytes of a process.
pub(crate) fn usage(proc_root: &Path, pid: u32) -> Option<(u64, u64)> {
    let process = procfs::process::Process::new_with_root(proc_root.join(pid.to_string())).ok()?;
    let stat = process.stat().ok()?;
    let ticks = stat.utime.saturating_add(stat.stime);
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let nanos = ticks.saturating_mul(1_000_000_000 / per_second);
    Some((
        nanos,
        stat.rss.saturating_mul(rustix::param::page_size() as u64),
    ))
}

#[cfg(test)]
mod tests {
    use super::is_worth;
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
}
