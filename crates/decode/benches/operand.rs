//! Measures the time to find the access of a sample, for samples in this program, which is one for x86-64:
//! `cargo bench -p isotherm-decode`. Decoding is most of what a thread that runs on emulated memory pays for each of its samples.

use std::hint::black_box;
use std::time::Instant;

use iced_x86::{Decoder, DecoderOptions};
use isotherm_decode::{AccessOrder, Architecture, BYTES_AFTER, BYTES_BEFORE, Window, access};
use object::{Object, ObjectSection};

/// Every how many instructions a sample is taken.
const STEP: usize = 31;

/// Rounds over all samples.
const ROUNDS: usize = 20;

fn main() {
    let path = std::env::current_exe().expect("the path of this program");
    let program = std::fs::read(path).expect("a program that can be read");
    let file = object::File::parse(&*program).expect("an ELF file");
    let code = file.section_by_name(".text").expect("code");
    let (start, code) = (code.address(), code.data().expect("code in the file"));
    let sampled: Vec<u64> = Decoder::with_ip(64, code, start, DecoderOptions::NONE)
        .into_iter()
        .step_by(STEP)
        .map(|instruction| instruction.ip())
        .collect();
    let windows: Vec<Window<'_>> = sampled
        .iter()
        .filter_map(|ip| {
            let first = ((ip - start) as usize).checked_sub(BYTES_BEFORE)?;
            Some(Window {
                code: code.get(first..first + BYTES_BEFORE + BYTES_AFTER)?,
                start: start + first as u64,
                ip: *ip,
            })
        })
        .collect();
    let (mut found, mut retired) = (0, 0);
    let began = Instant::now();
    for window in (0..ROUNDS).flat_map(|_| &windows) {
        let access = access(Architecture::X86, black_box(window));
        found += usize::from(access.is_some());
        retired += usize::from(access.is_some_and(|it| it.order == AccessOrder::Retired));
    }
    let nanoseconds = began.elapsed().as_nanos() as f64 / (ROUNDS * windows.len()) as f64;
    println!(
        "{nanoseconds:.0} ns a sample; {} samples, {found} accesses of which {retired} retired in {ROUNDS} rounds",
        windows.len()
    );
}
