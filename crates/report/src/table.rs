//! Aligned tables for a terminal.
//!
//! ```
//! use isotherm_report::table::{left, render, right};
//! let rows = [vec!["fast".into(), "512 MiB".into()], vec!["slow".into(), "8 GiB".into()]];
//! assert_eq!(
//!     render(&[left("tier"), right("capacity")], &rows),
//!     "tier  capacity\nfast   512 MiB\nslow     8 GiB\n"
//! );
//! ```

use crate::words::clip;

/// Which side of its column a cell stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A column: its title and the side its cells stand at.
#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    side: Side,
}

/// A column of text.
#[must_use]
pub fn left(title: &str) -> Column {
    Column {
        title: title.to_owned(),
        side: Side::Left,
    }
}

/// A column of numbers.
#[must_use]
pub fn right(title: &str) -> Column {
    Column {
        title: title.to_owned(),
        side: Side::Right,
    }
}

/// Characters of a cell that are shown at most.
const CELL: usize = 400;

/// The titles and rows, each column as wide as its widest cell, two blanks between columns. Cells
/// beyond the columns are left out, missing ones are empty, control characters become `?`.
#[must_use]
pub fn render(columns: &[Column], rows: &[Vec<String>]) -> String {
    let titles = columns.iter().map(|column| column.title.clone()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(&titles)
        .chain(rows)
        .map(|row: &Vec<String>| {
            (0..columns.len())
                .map(|i| clip(row.get(i).map_or("", String::as_str), CELL))
                .collect()
        })
        .collect();
    let width = |i: usize| lines.iter().map(|line| line[i].chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).map(|i| width(i).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = columns.iter().zip(line).zip(&widths);
        let cells: Vec<String> = cells
            .map(|((column, cell), width)| match column.side {
                Side::Left => format!("{cell:<width$}"),
                Side::Right => format!("{cell:>width$}"),
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{left, render, right};

    #[test]
    fn ragged_rows_and_hostile_cells_stay_in_their_columns() {
        let rows = [
            vec!["größe".to_owned(), "1".into(), "beyond".into()],
            vec!["\x1b[2J".to_owned()],
        ];
        assert_eq!(
            render(&[left("name"), right("n")], &rows),
            "name   n\ngröße  1\n?[2J\n"
        );
        assert_eq!(render(&[], &rows), "\n\n\n");
    }
}
