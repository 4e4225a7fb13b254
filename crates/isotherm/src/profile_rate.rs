//! Chooses the rate of the timer for a profile within a run (`--optimize-after`, or at the program's request), anew while the profile is
//! taken, because data grows and threads start; or sets the rate nearest to the one that the program named. With `--frequency` or
//! `--output` the run keeps one rate.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use isotherm_model::batch::Process;
use isotherm_model::port::Executor;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_observe::clock::MachineClock;
use isotherm_observe::source::sample_cost::{GUESS, sample_cost};
use isotherm_pipeline::{OTHER_HZ, SamplingNeed, sampling_rate};

use crate::cli::RunArgs;
use crate::observed_run::ObservedStep;

/// How long a profile is expected to take where nothing says it.
pub(crate) const EXPECTED: Nanos = Nanos(1_000_000_000);

/// Threads of the program that can run at a time.
static PROCESSORS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// How often the cost of a sample is measured, for 10 ms each.
const TRIALS: usize = 3;

/// The rates that the timer of a run can change to: none where the user named one, or where the run is recorded, at one rate.
pub(crate) fn others(args: &RunArgs) -> &'static [u32] {
    match args.observing.frequency.is_none() && args.output.is_none() {
        true => &OTHER_HZ,
        false => &[],
    }
}

/// Gives the timer the rate for a profile of these processes that takes the given time, if the run may change it.
pub(crate) fn choose<E: Executor>(
    step: &mut ObservedStep<E>,
    processes: &BTreeSet<Process>,
    time: Nanos,
) {
    if step.observer.timer_rates().len() < 2 {
        return;
    }
    let extents = step.attribution().extents().iter();
    let of_data =
        extents.filter(|extent| processes.contains(&extent.process) && extent.site.is_placeable());
    let resident: Bytes = of_data.map(|extent| extent.resident).sum();
    let threads: usize = processes.iter().map(|it| step.observer.threads(*it)).sum();
    let need = SamplingNeed {
        resident,
        threads: threads.clamp(1, *PROCESSORS) as u64,
        time,
        sample_cost: *MEASURED_COST,
    };
    if let Some(hz) = sampling_rate(&need, step.observer.timer_rates()) {
        step.observer.set_timer_hz(hz);
    }
}

/// Gives the timer the lowest of its rates that is at least this, or the highest, if the run may change it.
pub(crate) fn set<E: Executor>(step: &mut ObservedStep<E>, hz: u32) {
    if let Some(rate) = nearest(step.observer.timer_rates(), hz) {
        step.observer.set_timer_hz(rate);
    }
}

/// The lowest of these rates that is at least this, else the highest.
fn nearest(rates: &[u32], hz: u32) -> Option<u32> {
    let enough = rates.iter().copied().filter(|rate| *rate >= hz);
    enough.min().or_else(|| rates.iter().copied().max())
}

/// The cost of a timer sample here, measured once: the least of the trials, because other programs only add to it.
static MEASURED_COST: LazyLock<Nanos> = LazyLock::new(|| {
    let trials = (0..TRIALS).filter_map(|_| sample_cost(&MachineClock).ok());
    trials.min().unwrap_or(GUESS)
});

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_frequency_is_the_next_rate_that_is_as_high() {
        let rates = [1000, 250, 2000, 4000];
        let found = [1, 250, 251, 1000, 3000, 4000, 20_000].map(|hz| nearest(&rates, hz));
        let wanted = [250, 250, 1000, 1000, 4000, 4000, 4000].map(Some);
        assert_eq!(found, wanted);
        assert_eq!((nearest(&[500], 1000), nearest(&[], 9)), (Some(500), None));
    }
}
