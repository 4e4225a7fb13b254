//! Measures how fast idle memory is moved, beside a copy between resident memory.

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use isotherm_movement::fork_lock::ForkLock;
use isotherm_movement::nodes;
use isotherm_sys::memory;
use isotherm_sys::pagemap::{HUGE, PRESENT, Region, Wanted, regions_of};
use isotherm_sys::staged::{PageKind, StagedCopy, StagedSettings, UNIT_BYTES, UnitFate};
use serde_json::json;

use crate::output::say;
use crate::two_copies::{copy, move_by_two_copies};

#[derive(Debug, Args)]
pub struct CopyArgs {
    /// Size of the moved memory, MiB; even
    #[arg(long, default_value_t = 256)]
    mib: usize,
    /// Threads that copy
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Huge pages
    #[arg(long)]
    huge: bool,
    /// Measurements of each way, in turn
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Fully resident memory.
struct Field {
    start: usize,
    bytes: usize,
}

impl Field {
    fn new(bytes: usize, huge: bool) -> Result<Self> {
        let error = |error| anyhow::anyhow!("mapping {bytes} bytes: {error:?}");
        let space = memory::fresh(bytes + UNIT_BYTES).map_err(error)?;
        let start = space.next_multiple_of(UNIT_BYTES);
        let advice = if huge {
            libc::MADV_HUGEPAGE
        } else {
            libc::MADV_NOHUGEPAGE
        };
        // SAFETY: the range was mapped above, and is written once as bytes.
        unsafe {
            let _ = memory::advise(start, bytes, advice);
            std::ptr::write_bytes(start as *mut u8, 0x5a, bytes);
        }
        Ok(Self { start, bytes })
    }

    /// Bytes mapped as huge pages.
    fn huge_bytes(&self) -> Result<u64> {
        let pagemap = std::fs::File::open("/proc/self/pagemap")?;
        let wanted = Wanted {
            inverted: 0,
            all: PRESENT | HUGE,
            any: 0,
            told: HUGE,
        };
        let (mut at, end) = (self.start as u64, (self.start + self.bytes) as u64);
        let mut bytes = 0;
        while at < end {
            let mut regions = [Region::default(); 64];
            let (found, walked) = regions_of(&pagemap, at, end, wanted, &mut regions)?;
            bytes += regions[..found]
                .iter()
                .map(|r| r.end - r.start)
                .sum::<u64>();
            if walked <= at {
                break;
            }
            at = walked;
        }
        Ok(bytes)
    }

    fn is_intact(&self) -> bool {
        let words = std::ptr::with_exposed_provenance::<u64>(self.start);
        // SAFETY: the field is mapped and no thread writes to it now.
        let words = unsafe { std::slice::from_raw_parts(words, self.bytes / 8) };
        words.iter().all(|word| *word == 0x5a5a_5a5a_5a5a_5a5a)
    }
}

/// How the memory is moved.
enum Mover {
    /// A copy to other memory: the bound of every move.
    Memcpy,
    /// Staged copy.
    Staged(StagedCopy),
    /// ATMem's form.
    TwoCopies,
}

impl Mover {
    const fn word(&self) -> &'static str {
        match self {
            Self::Memcpy => "memcpy",
            Self::Staged(_) => "staged",
            Self::TwoCopies => "two copies",
        }
    }
}

/// A mover, and the seconds that it took.
struct Way {
    mover: Mover,
    seconds: Vec<f64>,
    /// Bytes not moved, in any round.
    left: u64,
}

/// Measures every way in turn and prints one JSON object.
pub fn run(args: &CopyArgs) -> Result<()> {
    let bytes = args.mib << 20;
    let field = Field::new(bytes, args.huge)?;
    let target = Field::new(bytes, args.huge)?;
    let kind = if args.huge {
        PageKind::Huge
    } else {
        PageKind::Small
    };
    let mut ways = ways(args, kind)?;
    let huge_before = field.huge_bytes()?;
    for round in 0..args.rounds {
        for step in 0..ways.len() {
            let at = (round + step) % ways.len();
            measure(&mut ways[at], &field, &target, kind, args.threads)?;
        }
    }
    if !field.is_intact() {
        bail!("the memory that was moved is not what it was");
    }
    let huge_after = field.huge_bytes()?;
    let gibibytes = bytes as f64 / (1 << 30) as f64;
    let rates = ways.iter().map(|way| {
        let rates: Vec<f64> = way.seconds.iter().map(|s| gibibytes / s).collect();
        json!({ "way": way.mover.word(), "gib_a_second": rates, "bytes_left": way.left })
    });
    say(json!({
            "mib": args.mib,
            "threads": args.threads,
            "huge": args.huge,
            "huge_bytes_before": huge_before,
            "huge_bytes_after": huge_after,
            "ways": rates.collect::<Vec<_>>(),
    }));
    Ok(())
}

fn ways(args: &CopyArgs, kind: PageKind) -> Result<Vec<Way>> {
    let settings = StagedSettings {
        threads: args.threads,
        even_if_there: true,
        ..StagedSettings::DEFAULT
    };
    let mut staged = StagedCopy::open(settings)?;
    staged.fill(nodes::with_memory()[0], kind, 8);
    let movers = [Mover::Memcpy, Mover::Staged(staged), Mover::TwoCopies];
    let way = |mover| Way {
        mover,
        seconds: Vec::new(),
        left: 0,
    };
    Ok(movers.into_iter().map(way).collect())
}

fn measure(
    way: &mut Way,
    field: &Field,
    target: &Field,
    kind: PageKind,
    threads: usize,
) -> Result<()> {
    let node = nodes::with_memory()[0];
    let range = field.start..field.start + field.bytes;
    let mut left = 0;
    let begun = Instant::now();
    // SAFETY, here and below: the fields are this program's, full, on unit boundaries and apart, and no thread
    // touches them meanwhile.
    match &mut way.mover {
        // SAFETY: as above.
        Mover::Memcpy => unsafe { copy(field.start, target.start, field.bytes, threads) },
        // SAFETY: as above.
        Mover::Staged(mover) => unsafe {
            mover.move_range(range, node, &ForkLock::new(), |part, fate| {
                if !matches!(fate, UnitFate::Moved(_)) {
                    left += part.len() as u64;
                }
            });
        },
        Mover::TwoCopies => {
            // SAFETY: as above.
            unsafe { move_by_two_copies(field.start, field.bytes, node, kind, threads) }
                .map_err(|error| anyhow::anyhow!("two copies: {error:?}"))?;
        }
    }
    way.seconds.push(begun.elapsed().as_secs_f64());
    way.left += left;
    Ok(())
}
