//! Stencil sweep: a five-point stencil in doubles reads one grid and writes another, line by line,
//! and the two are exchanged after every sweep. It uses no random numbers.
//!
//! ```text
//! read        north            write
//!       west  line  east             line      west, line and east lie in one cache line
//!             south
//! ```

use super::pcg::Pcg32;
use super::{GeneratorSettings, LINE, Pattern, Place};

/// Accesses for each line: north, the line, south, and the written line.
const STEPS: u64 = 4;

pub(super) struct StencilSweep {
    /// Lines in a row, and rows in a grid.
    columns: u64,
    rows: u64,
}

impl StencilSweep {
    /// Two square grids that fill the footprint.
    pub(super) const fn new(settings: &GeneratorSettings) -> Self {
        let doubles = (settings.pages() * super::PAGE / 2 / 8).isqrt();
        let columns = doubles / 8;
        Self {
            columns,
            rows: settings.pages() * super::PAGE / 2 / (columns * LINE),
        }
    }
}

impl Pattern for StencilSweep {
    fn place(&mut self, at: u64, _: &mut Pcg32) -> Place {
        let lines = self.columns * self.rows;
        let (step, line, sweep) = (at % STEPS, at / STEPS % lines, at / STEPS / lines);
        let (row, column) = (line / self.columns, line % self.columns);
        let row = match step {
            0 => row.saturating_sub(1),
            2 => (row + 1).min(self.rows - 1),
            _ => row,
        };
        let write = step == STEPS - 1;
        let grid = (sweep + u64::from(write)) % 2;
        Place {
            offset: (grid * lines + row * self.columns + column) * LINE,
            write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StencilSweep;
    use crate::generate::pcg::Pcg32;
    use crate::generate::{GeneratorSettings, LINE, Pattern};
    use isotherm_model::units::Bytes;

    #[test]
    fn a_line_reads_its_neighbours_and_writes_the_other_grid() {
        let settings = GeneratorSettings {
            footprint: Bytes(1 << 20),
            ..GeneratorSettings::default()
        };
        // Two grids of 512 KiB: 256 doubles a row are 32 lines, 256 rows.
        let mut sweep = StencilSweep::new(&settings);
        let mut place = |at| {
            let place = sweep.place(at, &mut Pcg32::new(0));
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
