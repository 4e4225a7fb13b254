//! `samples` reads the samples of a perf event so far, where Isotherm samples a thread of its own: so `doctor` tries events, and
//! `sample_cost` measures what a timer sample costs. `THIS_THREAD` names the calling thread to perf.

use isotherm_sys::perf::Sampler;
use isotherm_sys::perf::record::{PerfSample, Record, Records};

/// To perf, a process id names its first thread, and 0 the calling thread.
pub(crate) const THIS_THREAD: u32 = 0;

/// The samples so far, from rings and from hardware buffers.
pub(crate) fn samples(sampler: &mut Sampler) -> Vec<PerfSample> {
    let (mut bytes, mut traces, mut found) = (Vec::new(), Vec::new(), Vec::new());
    sampler.read(&mut bytes, &mut traces);
    for record in Records::new(&bytes, sampler.layout()) {
        if let Record::Sample(sample) = record {
            found.push(sample);
        }
    }
    for trace in &traces {
        super::spe::samples(trace, |sample| found.push(sample));
    }
    found
}
