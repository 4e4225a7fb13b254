//! The targets, one a file.

mod canary;
mod cpu_list;
mod decode;
mod dmi_device;
mod machine;
mod perf_records;
mod plan_text;
mod profile;
mod program;
mod quantities;
mod runtime_config;
mod seeds;
mod session;
mod site_id;
mod smaps;
mod spe;
mod tiers_file;
mod traces;

pub use seeds::Seeds;

/// A reader and what must hold of it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, also that of its folder in the corpus.
    pub name: &'static str,
    /// Hands bytes to the reader and panics where something is wrong. True where the reader took
    /// them as sound, so that a corpus of which everything is refused can be told.
    pub check: fn(&[u8]) -> bool,
    /// Seeds in binary formats, written by the format's own types. Text seeds are files only.
    pub seeds: fn() -> Seeds,
}

/// All targets but the canary.
pub const TARGETS: &[Target] = &[
    Target::text("cpu_list", cpu_list::check),
    Target::binary("damo_record", traces::damo_record, traces::damo_seeds),
    Target::text("damon_trace", traces::damon_trace),
    Target::binary("decode", decode::check, decode::seeds),
    Target::binary("dmi_device", dmi_device::check, dmi_device::seeds),
    Target::text("machine", machine::check),
    Target::text("memprof", traces::memprof),
    Target::binary(
        "memprof_raw",
        traces::memprof_raw,
        traces::memprof_raw_seeds,
    ),
    Target::binary("perf_data", traces::perf_data, traces::perf_data_seeds),
    Target::binary("perf_records", perf_records::check, perf_records::seeds),
    Target::text("perf_script", traces::perf_script),
    Target::text("plan_text", plan_text::check),
    Target::binary("profile", profile::check, profile::seeds),
    Target::binary("program", program::check, program::seeds),
    Target::text("quantities", quantities::check),
    Target::binary(
        "runtime_config",
        runtime_config::check,
        runtime_config::seeds,
    ),
    Target::binary("session", session::check, session::seeds),
    Target::text("site_id", site_id::check),
    Target::text("smaps", smaps::check),
    Target::binary("spe", spe::check, spe::seeds),
    Target::text("tiers_file", tiers_file::check),
    Target::text("trace_text", traces::text),
];

/// The target that must fail.
pub const CANARY: Target = Target::text("canary", canary::check);

impl Target {
    const fn text(name: &'static str, check: fn(&[u8]) -> bool) -> Self {
        Self::binary(name, check, Vec::new)
    }

    const fn binary(name: &'static str, check: fn(&[u8]) -> bool, seeds: fn() -> Seeds) -> Self {
        Self { name, check, seeds }
    }
}

/// The target with this name, the canary included.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS
        .iter()
        .chain([&CANARY])
        .find(|target| target.name == name)
}
