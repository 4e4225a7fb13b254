//! Measures how fast idle memory is moved, beside a copy between resident memory.
//!
//! On a machine of several nodes each move goes to the other one of the first two; on one of one node, to pages of the same.

use anyhow::{Result, bail};
use clap::Args;
use isotherm_movement::nodes;
use serde_json::json;

use crate::field::{Field, page_kind};
use crate::output::say;
use crate::rereading::Rereading;
use crate::ways::Way;

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

/// Measures every way in turn and prints one JSON object.
pub fn run(args: &CopyArgs) -> Result<()> {
    let bytes = args.mib << 20;
    let kind = page_kind(args.huge);
    let field = Field::new(bytes, kind)?;
    let target = Field::new(bytes, kind)?;
    let nodes = nodes::with_memory();
    let mut ways = Way::all(&nodes, kind, args.threads)?;
    let huge_before = field.huge_bytes()?;
    let mut rereading = Rereading::by_tlb_misses();
    // The field was touched first, on the first node where that had room.
    let (mut moves, count) = (0, ways.len());
    for round in 0..args.rounds {
        for step in 0..count {
            let way = &mut ways[(round + step) % count];
            moves += usize::from(way.moves());
            let node = nodes[moves % nodes.len().min(2)];
            way.measure((&field, &target), node, &mut rereading)?;
        }
    }
    if !field.is_intact() {
        bail!("the memory that was moved is not what it was");
    }
    let gibibytes = bytes as f64 / (1 << 30) as f64;
    let rates = ways.iter().map(|way| {
        let rates: Vec<f64> = way.seconds.iter().map(|s| gibibytes / s).collect();
        json!({
            "way": way.name,
            "gib_a_second": rates,
            "bytes_left": way.left,
            "huge_bytes_after": way.huge_after,
            "tlb_misses": way.tlb_misses,
        })
    });
    say(json!({
            "mib": args.mib,
            "nodes": nodes.len(),
            "threads": args.threads,
            "huge": args.huge,
            "no_tlb_counter": rereading.obstacle(),
            "huge_bytes_before": huge_before,
            "huge_bytes_after": field.huge_bytes()?,
            "ways": rates.collect::<Vec<_>>(),
    }));
    Ok(())
}
