//! Forks in the middle of moves: each child checks its copy of the memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use isotherm_movement::fork_lock::ForkLock;
use isotherm_sys::staged::Exclusion as _;

use crate::area::Area;
use crate::page::wrong_in_child;

/// A child's exit status where a word was wrong.
const WRONG: i32 = 1;

/// Forks from time to time until `stop`; returns the number of children, and the number of those with a wrong
/// word.
pub fn fork_often(
    areas: &[Area],
    lock: &ForkLock,
    stop: &AtomicBool,
    seed: u64,
) -> Result<(u64, u64)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut forks, mut wrong) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let done: Vec<Vec<u64>> = areas
            .iter()
            .map(|area| {
                (0..area.pages())
                    .map(|page| area.progress(page).done())
                    .collect()
            })
            .collect();
        lock.enter();
        // SAFETY: the child reads memory, calls nothing of the C library but `_exit`, and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            look(areas, &done);
        }
        lock.leave();
        if child < 0 {
            bail!("fork: {}", std::io::Error::last_os_error());
        }
        let mut status = 0;
        // SAFETY: the child is ours; the status is written to a local.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        forks += 1;
        wrong += u64::from(status != 0);
        std::thread::sleep(Duration::from_millis(random.u64(20..200)));
    }
    Ok((forks, wrong))
}

/// The child: checks every private area and leaves.
fn look(areas: &[Area], done: &[Vec<u64>]) -> ! {
    let mut wrong = 0;
    // A closed area is about to be moved without protection; its pages are its mover's.
    for (area, done) in areas
        .iter()
        .zip(done)
        .filter(|(area, _)| area.kind.is_private())
    {
        for (page, done) in done.iter().enumerate() {
            wrong += wrong_in_child(area.words(page), area.number(page), *done);
        }
    }
    // SAFETY: leaves without running anything of the parent's.
    unsafe { libc::_exit(if wrong == 0 { 0 } else { WRONG }) }
}
