//! Measures our own cost of planning and issuing page moves, without the kernel's: a simulated kernel answers
//! at once.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::system::{PageRun, PageSystem, ProcessSystem, Refusal};
use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction};
use isotherm_model::outcome::Fate;
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_sys::memory::Errno;
use serde_json::json;

use crate::output::say;
use crate::page::PAGE_BYTES;

#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Pages to move
    #[arg(long, default_value_t = 1_000_000)]
    pages: u64,
}

/// A kernel that has every page on node 0 and moves it in no time; one page in 16 is in use, so that outcomes
/// are as fragmented as possible.
struct Instantly {
    began: Instant,
}

impl PageSystem for Instantly {
    fn nodes_of(&mut self, _: u32, _: &[usize], status: &mut [i32]) -> Result<(), Errno> {
        status.fill(0);
        Ok(())
    }

    fn move_pages(
        &mut self,
        _: u32,
        addresses: &[usize],
        node: NodeId,
        status: &mut [i32],
    ) -> Result<usize, Refusal> {
        for (address, status) in addresses.iter().zip(status) {
            let busy = (address / PAGE_BYTES).is_multiple_of(16);
            *status = if busy { -libc::EBUSY } else { node.0 as i32 };
        }
        Ok(0)
    }

    fn resident(&mut self, _: u32, range: AddressRange) -> Option<Vec<PageRun>> {
        Some(vec![PageRun { range, huge: false }])
    }

    fn split(&mut self, _: u32, _: u64) -> Result<(), Refusal> {
        Ok(())
    }
}

impl ProcessSystem for Instantly {
    fn has_ended(&mut self, _: u32) -> bool {
        false
    }

    fn now_ns(&mut self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

/// Measures our own processor time and prints one JSON object.
pub fn run(args: &PlanArgs) -> Result<()> {
    let kernel = Instantly {
        began: Instant::now(),
    };
    let mut migration = Migration::new(kernel);
    let action = RangeAction {
        process: Process::default(),
        range: AddressRange {
            start: 1 << 40,
            bytes: Bytes(args.pages * PAGE_BYTES as u64),
        },
        node: NodeId(1),
    };
    let begun = Instant::now();
    let outcomes = migration.execute(std::slice::from_ref(&action));
    let seconds = begun.elapsed().as_secs_f64();
    let moved = outcomes[0].bytes_of(|fate| *fate == Fate::Moved);
    say(json!({
            "pages": args.pages,
            "moved": moved.0 / PAGE_BYTES as u64,
            "parts": outcomes[0].parts.len(),
            "seconds": seconds,
    }));
    Ok(())
}
