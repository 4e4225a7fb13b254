//! The same program run several ways: the table that `make demo` and the benchmarks print.
//!
//! ```text
//! workload  all slow  first touch  guided  all fast  bound  gap closed
//! bfs         9.20 s       6.10 s  3.40 s    3.10 s  3.20 s        90 %
//! ```

use isotherm_model::units::Nanos;

use crate::table::{left, render, right};
use crate::words::percent;

/// Times of one program run several ways; `None` for one that was not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Name of the program or workload.
    pub workload: String,
    /// Everything in the slow tier.
    pub all_slow: Option<Nanos>,
    /// Placed in the order of first allocation until the fast tier was full.
    pub first_touch: Option<Nanos>,
    /// Placed by the plan.
    pub guided: Option<Nanos>,
    /// Everything in the fast tier.
    pub all_fast: Option<Nanos>,
    /// What the fractional bound promises at best.
    pub bound: Option<Nanos>,
}

impl Comparison {
    /// Share of the time between first touch and all fast that guiding saved: (first touch −
    /// guided) / (first touch − all fast). Negative where guiding lost; none where a run is missing
    /// or first touch was no slower than all fast, so that there was no gap.
    #[must_use]
    pub fn gap_closed(&self) -> Option<f64> {
        let (first, guided, fast) = (self.first_touch?.0, self.guided?.0, self.all_fast?.0);
        (first > fast).then(|| (first as f64 - guided as f64) / (first as f64 - fast as f64))
    }

    /// A time as a multiple of all fast.
    #[must_use]
    pub fn ratio(&self, time: Option<Nanos>) -> Option<f64> {
        let fast = self.all_fast.filter(|fast| fast.0 > 0)?;
        Some(time?.0 as f64 / fast.0 as f64)
    }

    fn cells(&self) -> [(&'static str, Option<Nanos>); 5] {
        [
            ("all slow", self.all_slow),
            ("first touch", self.first_touch),
            ("guided", self.guided),
            ("all fast", self.all_fast),
            ("bound", self.bound),
        ]
    }

    /// One program, a line for each way: time, and that as a multiple of all fast.
    #[must_use]
    pub fn render(&self) -> String {
        let rows: Vec<_> = self
            .cells()
            .into_iter()
            .filter_map(|(name, time)| {
                let ratio = self.ratio(time).map(|ratio| format!("{ratio:.2}x"));
                Some(vec![
                    name.to_owned(),
                    time?.to_string(),
                    ratio.unwrap_or_default(),
                ])
            })
            .collect();
        let mut text = render(
            &[left("placement"), right("time"), right("of all fast")],
            &rows,
        );
        if let Some(gap) = self.gap_closed() {
            let gap = signed(gap);
            text.push_str(&format!(
                "guided closes {gap} of the gap between first touch and all fast\n"
            ));
        }
        text
    }
}

fn signed(share: f64) -> String {
    if share < 0.0 {
        format!("-{}", percent(-share))
    } else {
        percent(share)
    }
}

/// Several programs, one a line, and the geometric mean of each column as a multiple of all fast
/// over the programs that have both.
#[must_use]
pub fn render_all(comparisons: &[Comparison]) -> String {
    let time = |time: Option<Nanos>| time.map_or_else(|| "-".to_owned(), |time| time.to_string());
    let mut rows: Vec<Vec<String>> = comparisons
        .iter()
        .map(|comparison| {
            let mut row = vec![comparison.workload.clone()];
            row.extend(comparison.cells().map(|(_, cell)| time(cell)));
            let gap = comparison.gap_closed().map(signed);
            row.push(gap.unwrap_or_else(|| "-".to_owned()));
            row
        })
        .collect();
    if comparisons.len() > 1 {
        let mut means = vec!["geometric mean, of all fast".to_owned()];
        means.extend((0..5).map(|way| {
            let ratios = comparisons.iter().filter_map(|c| c.ratio(c.cells()[way].1));
            geometric_mean(ratios).map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}x"))
        }));
        rows.push(means);
    }
    let columns = [
        left("workload"),
        right("all slow"),
        right("first touch"),
        right("guided"),
        right("all fast"),
        right("bound"),
        right("gap closed"),
    ];
    render(&columns, &rows)
}

/// The n-th root of the product, by logarithms; none of no numbers.
#[must_use]
pub fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = ratios.fold((0_u32, 0.0), |(n, sum), ratio| (n + 1, sum + ratio.ln()));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::{Comparison, render_all};
    use isotherm_model::units::Nanos;

    fn bfs() -> Comparison {
        let seconds = |tenths: u64| Some(Nanos(tenths * 100_000_000));
        Comparison {
            workload: "bfs".into(),
            all_slow: seconds(90),
            first_touch: seconds(60),
            guided: seconds(35),
            all_fast: seconds(30),
            bound: None,
        }
    }

    #[test]
    fn one_program_shows_times_ratios_and_the_gap() {
        assert_eq!(
            bfs().render(),
            "placement      time  of all fast\n\
             all slow     9.00 s        3.00x\n\
             first touch  6.00 s        2.00x\n\
             guided       3.50 s        1.17x\n\
             all fast     3.00 s        1.00x\n\
             guided closes 83 % of the gap between first touch and all fast\n"
        );
    }

    #[test]
    fn several_programs_end_with_the_geometric_mean() {
        let slower = Comparison {
            workload: "gups".into(),
            guided: Some(Nanos(14_000_000_000)),
            ..bfs()
        };
        let text = render_all(&[bfs(), slower]);
        assert!(text.contains("-267 %"), "{text}");
        // sqrt(3.5/3 * 14/3) = 2.33
        assert!(text.lines().last().unwrap().contains("2.33x"), "{text}");
    }

    #[test]
    fn there_is_no_gap_where_first_touch_is_as_good_as_all_fast() {
        let mut even = bfs();
        even.first_touch = even.all_fast;
        assert_eq!(even.gap_closed(), None);
        assert!(!even.render().contains("gap"));
    }
}
