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
//! tiers     kinds of memory: from sysfs, measured, or from a file
//! doctor    what works here and what would bring the rest; probe asks the kernel
//! symbols   names of frames; described the sites that the compiler pass wrote into a program, and
//!           contexts the calls around them that its link told apart, named_sites which of both a
//!           stack is that was seen in another build; demangled names of C++ for people; calls the calls
//!           in the functions of a program, by which a plan's sites are found in another build
//! ```
//!
//! What is read from outside is not trusted: perf records ([`isotherm_sys::perf::record`]), what SPE writes ([`spe`]),
//! session files ([`session`]), the text of smaps ([`accessed::parse_smaps`]), what sysfs tells of
//! nodes ([`tiers::nodes`]), tiers files ([`tiers::parse`]) and machine code ([`decode::operand`])
//! may hold anything without a panic or an allocation beyond a named bound.
//!
//! File-system root and clock are arguments, so that recorded machines and set clocks test what
//! reads them.
#![forbid(unsafe_code)]

pub mod accessed;
mod assigned;
pub mod calls;
pub mod clock;
pub mod code;
pub mod contexts;
pub mod counters;
pub mod cpu_time;
pub mod decode;
pub mod demangled;
pub mod described;
pub mod doctor;
pub mod gate;
pub mod instrumented;
pub mod list;
pub mod live;
mod machine_calls;
pub mod meminfo;
pub mod name_cache;
pub mod named_sites;
pub mod perf_source;
pub mod pmu;
pub mod probe;
pub mod processes;
pub mod resident;
pub mod sample_price;
mod segment;
pub mod session;
pub mod sessions;
pub mod sites;
pub mod source;
pub mod spe;
pub mod symbols;
pub mod tiers;
pub mod tracked;
pub mod watch;
