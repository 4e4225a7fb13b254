//! Draws a curve of shares with block characters for a terminal, such as the accesses by capacity in a report ([`area`]), and the text
//! below an axis, a word at each end ([`ends`]).
//!
//! ```text
//! 100 % │         ▂▄▆█
//!  50 % │   ▂▅▇███████
//!       └─────────────
//! ```

/// Lines of a curve.
const LINES: usize = 8;
/// Columns before the first one of the curve.
pub(crate) const MARGIN: usize = 7;

/// The curve of a share, 0 to 1, over `width` columns from the left: `at` tells the share at the
/// end of a column, which is between 0 and 1 of the way. The axis stands below it.
pub(crate) fn area(width: usize, at: impl Fn(f64) -> f64) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let share = |column: usize| at((column + 1) as f64 / width as f64).clamp(0.0, 1.0);
    let height = |column| (share(column) * (LINES * 8) as f64).round() as usize;
    let heights: Vec<usize> = (0..width).map(height).collect();
    let mut text = String::new();
    for line in (0..LINES).rev() {
        let label = match line {
            7 => "100 %",
            3 => " 50 %",
            _ => "     ",
        };
        let cell = |height: &usize| LEVELS[height.saturating_sub(line * 8).min(8)];
        let cells: String = heights.iter().map(cell).collect();
        text += format!("{label} │{cells}").trim_end();
        text.push('\n');
    }
    text + &format!("      └{}\n", "─".repeat(width))
}

/// The line below an axis: a word at its beginning and one at its end.
pub(crate) fn ends(width: usize, left: &str, right: &str) -> String {
    let rest = width.saturating_sub(left.chars().count());
    format!("{}{left}{right:>rest$}\n", " ".repeat(MARGIN))
}
