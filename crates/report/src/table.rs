//! [`DataTable`] is a table for a terminal or an HTML page: each column is defined once, as its title, its alignment and the text of its
//! cells. In a terminal `comfy-table`, which knows how wide a terminal draws each character, aligns the columns.
//!
//! ```
//! use isotherm_report::table::DataTable;
//! let tiers = [("fast", 1), ("slow", 16)];
//! let table = DataTable::of(&tiers).left("tier", |tier| tier.0).right("nodes", |tier| tier.1);
//! assert_eq!(table.render(), "tier  nodes\nfast      1\nslow     16\n");
//! ```

use comfy_table::{CellAlignment, presets};

use crate::words::clip;

/// Characters of a cell that are shown at most.
const CELL: usize = 400;

/// A table with a row for each value.
pub struct DataTable<'a, T> {
    rows: &'a [T],
    columns: Vec<Column<'a, T>>,
}

/// A column: its title, its side, and the text of a row's cell.
struct Column<'a, T> {
    title: String,
    side: CellAlignment,
    cell: Box<dyn Fn(&T) -> String + 'a>,
}

impl<'a, T> DataTable<'a, T> {
    /// A table of these rows, without columns yet.
    #[must_use]
    pub const fn of(rows: &'a [T]) -> Self {
        let columns = Vec::new();
        Self { rows, columns }
    }

    /// Adds a column of text.
    #[must_use]
    pub fn left<C: ToString>(self, title: &str, cell: impl Fn(&T) -> C + 'a) -> Self {
        self.column(title, CellAlignment::Left, cell)
    }

    /// Adds a column of numbers.
    #[must_use]
    pub fn right<C: ToString>(self, title: &str, cell: impl Fn(&T) -> C + 'a) -> Self {
        self.column(title, CellAlignment::Right, cell)
    }

    fn column<C: ToString>(
        mut self,
        title: &str,
        side: CellAlignment,
        cell: impl Fn(&T) -> C + 'a,
    ) -> Self {
        self.columns.push(Column {
            title: title.to_owned(),
            side,
            cell: Box::new(move |row| cell(row).to_string()),
        });
        self
    }

    /// The title of each column, with true for a column of numbers.
    pub fn titles(&self) -> impl Iterator<Item = (&str, bool)> {
        let columns = self.columns.iter();
        columns.map(|column| (column.title.as_str(), column.side == CellAlignment::Right))
    }

    /// The cells of each row.
    pub fn cells(&self) -> impl Iterator<Item = Vec<String>> {
        let of_row = |row| self.columns.iter().map(move |column| (column.cell)(row));
        self.rows.iter().map(move |row| of_row(row).collect())
    }

    /// The table for a terminal: each column as wide as its widest cell, two blanks between columns. Control characters become `?`.
    #[must_use]
    pub fn render(&self) -> String {
        let clipped = |cell: &str| clip(cell, CELL);
        let mut drawn = comfy_table::Table::new();
        drawn.load_style(presets::NOTHING);
        drawn.set_header(self.titles().map(|(title, _)| clipped(title)));
        for row in self.cells() {
            drawn.add_row(row.iter().map(|cell| clipped(cell)));
        }
        for (column, drawn) in self.columns.iter().zip(drawn.column_iter_mut()) {
            drawn.set_padding((0, 2)).set_cell_alignment(column.side);
        }
        drawn.trim_fmt() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::DataTable;

    fn rendered(rows: &[(&str, &str)]) -> String {
        let table = DataTable::of(rows).left("name", |row| row.0.to_owned());
        table.right("n", |row| row.1.to_owned()).render()
    }

    #[test]
    fn hostile_cells_stay_in_their_columns() {
        let rows = [("größe", "1"), ("\x1b[2J", "")];
        assert_eq!(rendered(&rows), "name   n\ngröße  1\n?[2J\n");
    }

    #[test]
    fn columns_are_as_wide_as_a_terminal_shows_their_cells() {
        let rows = [("数据", "1"), ("data", "2")];
        assert_eq!(rendered(&rows), "name  n\n数据  1\ndata  2\n");
    }
}
