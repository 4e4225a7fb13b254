//! Measures how long a writer waits while its memory moves.
//!
//! One writer writes without pause to the unit that is being moved and reads the clock after each write; its
//! longest pause while a unit moves is that unit's stall. On a busy machine the scheduler's pauses count with
//! the others: the same is measured with nothing moving.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use isotherm_movement::fork_lock::ForkLock;
use isotherm_movement::nodes;
use isotherm_sys::staged::{StagedCopy, StagedSettings, UNIT_BYTES, UnitFate};
use serde_json::json;

use crate::field::{Field, page_kind};
use crate::output::say;

#[derive(Debug, Args)]
pub struct StallArgs {
    /// Move nothing: the pauses that the machine itself causes
    #[arg(long)]
    idle: bool,
    /// Threads that copy
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Huge pages
    #[arg(long)]
    huge: bool,
    /// Units moved
    #[arg(long, default_value_t = 2000)]
    units: usize,
    /// Pause between two, microseconds
    #[arg(long, default_value_t = 1000)]
    pause_us: u64,
}

/// Units that are moved in turn.
const UNITS: usize = 32;

/// The state shared by mover and writer.
struct Shared {
    start: usize,
    unit: AtomicUsize,
    stop: AtomicBool,
    /// The writer's longest pause since the last query, nanoseconds.
    longest: AtomicU64,
    writes: AtomicU64,
}

/// Measures the pauses and prints one JSON object.
pub fn run(args: &StallArgs) -> Result<()> {
    let settings = StagedSettings {
        threads: args.threads,
        even_if_there: true,
        ..StagedSettings::DEFAULT
    };
    let mut mover = StagedCopy::open(settings).context("opening the staged copy")?;
    let shared = Shared {
        start: Field::new(UNITS * UNIT_BYTES, page_kind(args.huge))?.start,
        unit: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        longest: AtomicU64::new(0),
        writes: AtomicU64::new(0),
    };
    let (node, lock) = (nodes::with_memory()[0], ForkLock::default());
    let (mut stalls, mut stops, mut moved) = (Vec::new(), Vec::new(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| shared.hammer());
        for round in 0..args.units {
            let unit = round % UNITS;
            shared.unit.store(unit, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(args.pause_us));
            shared.longest.store(0, Ordering::SeqCst);
            if !args.idle {
                let address = shared.start + unit * UNIT_BYTES;
                let note = |_, fate| {
                    if let UnitFate::Moved(work) = fate {
                        moved += 1;
                        stops.push(work.stop_ns);
                    }
                };
                // SAFETY: the field is written as atomics alone and never unmapped.
                unsafe { mover.move_range(address..address + UNIT_BYTES, node, &lock, note) };
            } else {
                std::thread::sleep(Duration::from_micros(300));
            }
            // The current pause ends with the next write.
            let writes = shared.writes.load(Ordering::SeqCst);
            while shared.writes.load(Ordering::SeqCst) <= writes + 1 {
                std::hint::spin_loop();
            }
            stalls.push(shared.longest.load(Ordering::SeqCst));
        }
        shared.stop.store(true, Ordering::SeqCst);
    });
    say(json!({
            "idle": args.idle,
            "huge": args.huge,
            "threads": args.threads,
            "units": args.units,
            "moved": moved,
            "stall_us": spread(&mut stalls),
            "stop_us": spread(&mut stops),
    }));
    Ok(())
}

impl Shared {
    /// Writes to random words of the present unit and records the longest pause between two.
    fn hammer(&self) {
        let mut random = fastrand::Rng::with_seed(1);
        let mut last = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            let unit = self.unit.load(Ordering::Relaxed);
            let word = random.usize(..UNIT_BYTES / 8);
            let address = self.start + unit * UNIT_BYTES + word * 8;
            let cell = std::ptr::with_exposed_provenance::<AtomicU64>(address);
            // SAFETY: in bounds of the field, aligned, shared as atomics alone.
            unsafe { &*cell }.store(word as u64, Ordering::Relaxed);
            let now = Instant::now();
            let pause = u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX);
            last = now;
            self.longest.fetch_max(pause, Ordering::SeqCst);
            self.writes.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Median, 99th percentile and largest, in microseconds.
fn spread(nanos: &mut [u64]) -> serde_json::Value {
    nanos.sort_unstable();
    let at = |share: f64| {
        let index = (nanos.len() as f64 * share) as usize;
        let value = nanos.get(index.min(nanos.len().saturating_sub(1)));
        value.map_or(0.0, |nanos| *nanos as f64 / 1e3)
    };
    json!({ "p50": at(0.5), "p99": at(0.99), "max": at(1.0) })
}
