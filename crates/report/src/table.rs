//! Aligned tables for a terminal: columns in `comfy-table`, which knows how wide a terminal draws each character.
//!
//! ```
//! use isotherm_report::table::{left, render, right};
//! let rows = [vec!["fast".into(), "512 MiB".into()], vec!["slow".into(), "8 GiB".into()]];
//! assert_eq!(
//!     render(&[left("tier"), right("capacity")], &rows),
//!     "tier  capacity\nfast   512 MiB\nslow     8 GiB\n"
//! );
//! ```

use comfy_table::{CellAlignment, Table, presets};

use crate::words::clip;

/// A column: its title and the side its cells stand at.
#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    side: CellAlignment,
}

/// A column of text.
#[must_use]
pub fn left(title: &str) -> Column {
    Column {
        title: title.to_owned(),
        side: CellAlignment::Left,
    }
}

/// A column of numbers.
#[must_use]
pub fn right(title: &str) -> Column {
    Column {
        title: title.to_owned(),
        side: CellAlignment::Right,
    }
}

/// Characters of a cell that are shown at most.
const CELL: usize = 400;

/// The titles and rows, each column as wide as its widest cell, two blanks between columns. Cells
/// beyond the columns are left out, missing ones are empty, control characters become `?`.
#[must_use]
pub fn render(columns: &[Column], rows: &[Vec<String>]) -> String {
    if columns.is_empty() {
        return "\n".repeat(1 + rows.len());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|column| clip(&column.title, CELL)));
    for row in rows {
        table.add_row(row.iter().take(columns.len()).map(|cell| clip(cell, CELL)));
    }
    for (column, drawn) in columns.iter().zip(table.column_iter_mut()) {
        drawn.set_padding((0, 2)).set_cell_alignment(column.side);
    }
    table.trim_fmt() + "\n"
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

    #[test]
    fn columns_are_as_wide_as_a_terminal_shows_their_cells() {
        let rows = [
            vec!["数据".to_owned(), "1".into()],
            vec!["data".to_owned(), "2".into()],
        ];
        assert_eq!(
            render(&[left("name"), right("n")], &rows),
            "name  n\n数据  1\ndata  2\n"
        );
    }
}
