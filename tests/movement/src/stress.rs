//! Runs the proof: moves every kind of memory by every executor while it is written, read, forked, locked, shared, and read into by a disk,
//! and while a mover in another process is killed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use isotherm_movement::fork_lock::ForkLock;
use isotherm_movement::nodes;

use crate::area::{Area, Kind};
use crate::crowd::{self, Tally};
use crate::direct::Direct;
use crate::output::say;
use crate::{forks, movers, outside};

#[derive(Debug, Args)]
pub struct StressArgs {
    /// Duration in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Fail unless at least this many writes were checked
    #[arg(long, default_value_t = 0)]
    at_least: u64,
    /// Seed of every random choice; a random one, printed, without it
    #[arg(long)]
    seed: Option<u64>,
    /// Threads that write
    #[arg(long, default_value_t = 2)]
    writers: usize,
    /// Threads that read
    #[arg(long, default_value_t = 1)]
    readers: usize,
    /// Folder of the files; on a disk, so that direct I/O is tested
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Move without protection, which must be detected
    #[arg(long)]
    canary: bool,
}

/// Runs the proof; an error if a word was lost.
pub fn run(args: &StressArgs) -> Result<()> {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    say(format_args!("seed {seed}"));
    let nodes = nodes::with_memory();
    if nodes.len() == 1 {
        say(format_args!(
            "one node: staged copies move within it, kernel migration finds all already there"
        ));
    }
    let areas = areas(args, seed);
    if args.canary {
        return canary(args, &areas, seed);
    }
    let direct = Direct::new(&args.folder)
        .map_err(|error| say(format_args!("without direct I/O: {error:#}")))
        .ok();
    let (tally, stop, lock) = (
        Tally::default(),
        AtomicBool::new(false),
        ForkLock::default(),
    );
    std::thread::scope(|scope| -> Result<()> {
        start_crowd(scope, args, &areas, &tally, &stop, seed);
        let forks = scope.spawn(|| forks::fork_often(&areas, &lock, &stop, seed ^ 1));
        let kills = scope.spawn(|| outside::start_and_kill(&stop, seed ^ 2));
        let reads = direct
            .as_ref()
            .map(|direct| scope.spawn(|| direct.read_often(&stop, seed ^ 3)));
        let moving = scope
            .spawn(|| movers::move_often(&areas, direct.as_ref(), &nodes, &lock, &stop, seed ^ 4));
        wait(args.seconds, &tally);
        stop.store(true, Ordering::SeqCst);
        let joined = "a thread of the stress panicked";
        let (forks, wrong_children) = forks.join().ok().context(joined)??;
        let kills = kills.join().ok().context(joined)??;
        let (blocks, wrong_blocks) = match reads {
            Some(reads) => reads.join().ok().context(joined)??,
            None => (0, 0),
        };
        say(moving.join().ok().context(joined)??);
        say(format_args!(
            "forks {forks}, children that found a wrong word {wrong_children}"
        ));
        say(format_args!("movers outside killed {kills}"));
        say(format_args!(
            "direct reads {blocks}, wrong ones {wrong_blocks}"
        ));
        let wrong = wrong_children + wrong_blocks;
        tally.wrong.fetch_add(wrong, Ordering::Relaxed);
        Ok(())
    })?;
    conclude(args, &areas, &tally, seed)
}

fn areas(args: &StressArgs, seed: u64) -> Vec<Area> {
    let mut areas: Vec<Area> = Vec::new();
    let mut first_page = seed % 1_000_000;
    for kind in Kind::ALL {
        match Area::new(kind, Path::new(&args.folder), first_page) {
            Ok(area) => {
                first_page += area.pages() as u64;
                areas.push(area);
            }
            Err(error) => say(format_args!("without {} memory: {error}", kind.word())),
        }
    }
    areas
}

fn start_crowd<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    args: &StressArgs,
    areas: &'scope [Area],
    tally: &'scope Tally,
    stop: &'scope AtomicBool,
    seed: u64,
) {
    let writers = args.writers.max(1);
    for writer in 0..writers {
        let seed = seed.wrapping_add(100 + writer as u64);
        scope.spawn(move || crowd::write(areas, tally, stop, writer, writers, seed));
    }
    for reader in 0..args.readers {
        let seed = seed.wrapping_add(200 + reader as u64);
        scope.spawn(move || crowd::read(areas, tally, stop, seed));
    }
}

fn wait(seconds: u64, tally: &Tally) {
    let bar = ProgressBar::new(seconds);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} s, {msg}") {
        bar.set_style(style);
    }
    for _ in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        bar.inc(1);
        let written = tally.written.load(Ordering::Relaxed);
        let wrong = tally.wrong.load(Ordering::Relaxed);
        bar.set_message(format!("{written} writes checked, {wrong} wrong"));
    }
    bar.finish_and_clear();
}

fn conclude(args: &StressArgs, areas: &[Area], tally: &Tally, seed: u64) -> Result<()> {
    let last = crowd::check_all(areas);
    let written = tally.written.load(Ordering::Relaxed);
    let wrong = tally.wrong.load(Ordering::Relaxed) + last.wrong;
    let read = tally.read.load(Ordering::Relaxed);
    say(format_args!("words checked by readers {read}"));
    say(format_args!("words checked at the end {}", last.words));
    say(format_args!("writes checked {written}"));
    say(format_args!("lost or torn words {wrong}"));
    if wrong > 0 {
        bail!("{wrong} words were lost or torn (--seed {seed} makes the same choices again)");
    }
    if written < args.at_least {
        bail!(
            "only {written} writes were checked, {} were requested",
            args.at_least
        );
    }
    Ok(())
}

/// Moves by two copies under writers, which loses writes: a proof that does not detect it proves nothing.
fn canary(args: &StressArgs, areas: &[Area], seed: u64) -> Result<()> {
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let begun = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        start_crowd(scope, args, areas, &tally, &stop, seed);
        let caught = || tally.wrong.load(Ordering::Relaxed) > 0;
        let mut moved = Ok(());
        while moved.is_ok() && !caught() && begun.elapsed() < Duration::from_secs(args.seconds) {
            moved = movers::move_unprotected(areas);
        }
        stop.store(true, Ordering::SeqCst);
        moved
    })?;
    let wrong = tally.wrong.load(Ordering::Relaxed) + crowd::check_all(areas).wrong;
    say(format_args!("lost or torn words {wrong}"));
    if wrong == 0 {
        bail!("an unprotected move under writers lost nothing that was seen");
    }
    say(format_args!("caught, as it must be"));
    Ok(())
}
