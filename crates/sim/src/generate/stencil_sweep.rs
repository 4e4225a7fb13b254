//! Stencil sweep: a five-point stencil in doubles reads one grid and writes another, line by line,
//! and the two are exchanged after every sweep. It uses no random numbers.
//!
//! ```text
//! read        north            write
//!       west  line  east             line      west, line and east lie in one cache line
//!             south
//! ```

use super::pcg::Pcg32;
use super::{GeneratorSettings, LINE, PAGE, Pattern, Place};

/// Accesses for each line: north, the line, south, and the written line.
const STEPS: u64 = 4;

/// Two square grids that fill the footprint.
pub(super) fn stencil_sweep(settings: &GeneratorSettings, _: &mut Pcg32) -> Pattern {
    let grid = settings.pages() * PAGE / 2;
    // Lines in a row, and rows in a grid.
    let columns = (grid / 8).isqrt() / 8;
    let rows = grid / (columns * LINE);
    let lines = columns * rows;
    Box::new(move |at, _| {
        let (step, line, sweep) = (at % STEPS, at / STEPS % lines, at / STEPS / lines);
        let (row, column) = (line / columns, line % columns);
        let row = match step {
            0 => row.saturating_sub(1),
            2 => (row + 1).min(rows - 1),
            _ => row,
        };
        let write = step == STEPS - 1;
        let grid = (sweep + u64::from(write)) % 2;
        Place {
            offset: (grid * lines + row * columns + column) * LINE,
            write,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::stencil_sweep;
    use crate::generate::pcg::Pcg32;
    use crate::generate::{GeneratorSettings, LINE};
    use isotherm_model::units::Bytes;

    #[test]
    fn a_line_reads_its_neighbours_and_writes_the_other_grid() {
        let settings = GeneratorSettings {
            footprint: Bytes(1 << 20),
            ..GeneratorSettings::default()
        };
        // Two grids of 512 KiB: 256 doubles a row are 32 lines, 256 rows.
        let mut sweep = stencil_sweep(&settings, &mut Pcg32::new(0));
        let mut place = |at| {
            let place = sweep(at, &mut Pcg32::new(0));
            (place.offset / LINE, place.write)
        };
        let grid = 32 * 256;
        let second_row = 32 * 4;
        let accesses: Vec<_> = (second_row..second_row + 4).map(&mut place).collect();
        assert_eq!(
            accesses,
            [(0, false), (32, false), (64, false), (grid + 32, true)]
        );
        // The next sweep reads what this one wrote.
        assert_eq!(place(grid * 4 + 1), (grid, false));
        assert_eq!(place(grid * 4 + 3), (0, true));
    }
}
