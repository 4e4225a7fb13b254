//! Observes running programs: joins samples, accessed bits, session files and page tables into
//! batches, for `isotherm record`, the daemon and `isotherm doctor`.
//!
//! ```text
//! live     one run: joins the sources and tables below into a Batch an epoch
//!  |- source, pmu     sources by name, and the perf events behind them
//!  |- spe             decodes the records of Arm's statistical profiling extension
//!  |- perf_source     rings -> records -> perf events; code + decode -> data addresses
//!  |- instrumented    counts of programs that isotherm-cc --profile compiled
//!  |- accessed        accessed bits in short windows; counter_throttle: TMP's rule for saving cost
//!  |- sessions        all session files: tracked (one image), session (one file), sites
//!  |- resident        resident pages of ranges
//!  `- processes       the process tree: forks, execs and their times
//! counters  memory traffic: misses, controllers, resctrl; the counter that throttles a source
//! doctor    features of this machine and remedies for missing ones; probe tries the kernel
//! ```
//!
//! Input from outside is not trusted: perf records ([`isotherm_sys::perf::record`]), SPE records ([`spe`]), session
//! files ([`session`]) and the text of smaps ([`accessed::parse_smaps`]) may hold any bytes without a panic or an
//! allocation beyond a named bound.
//!
//! File-system root and clock are arguments, so that tests use recorded machines and set clocks.
#![forbid(unsafe_code)]

pub mod accessed;
pub mod clock;
pub mod counter_throttle;
pub mod counters;
pub mod cpu_time;
pub mod doctor;
pub mod instrumented;
pub mod live;
mod own_samples;
pub mod perf_source;
pub mod pmu;
pub mod probe;
pub mod processes;
pub mod resident;
pub mod sample_cost;
pub mod session;
pub mod sessions;
pub mod sites;
pub mod source;
pub mod spe;
pub mod tracked;
pub mod watch;
