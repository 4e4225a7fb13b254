//! Turns what the kernel and the runtime know of a running program into batches.
//!
//! ```text
//! live     one run: joins everything below into a Batch an epoch
//!  |- source, pmu     sources by name, and the perf events behind them
//!  |- spe             what Arm's statistical profiling extension writes
//!  |- perf_source     rings -> records -> happenings; code + decode -> data addresses
//!  |- instrumented    counts of programs that isotherm-cc --profile compiled
//!  |- accessed, gate  accessed bits in short windows; TMP's rule for resting
//!  |- sessions        all session files: tracked (one image), session (one file), sites
//!  |- resident        resident pages of ranges
//!  `- processes       who forked whom, who ran what when
//! counters  how busy memory is: misses, controllers, resctrl; what lets a source rest
//! doctor    what works here and what would bring the rest; probe asks the kernel
//! ```
//!
//! What is read from outside is not trusted: perf records ([`isotherm_sys::perf::record`]), what SPE writes ([`spe`]),
//! session files ([`session`]) and the text of smaps ([`accessed::parse_smaps`])
//! may hold anything without a panic or an allocation beyond a named bound.
//!
//! File-system root and clock are arguments, so that recorded machines and set clocks test what
//! reads them.
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
