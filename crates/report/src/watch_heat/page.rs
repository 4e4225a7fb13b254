//! The grid and the distribution as pictures in one page that needs no network.

use std::error::Error;

use isotherm_model::units::Bytes;
use isotherm_model::watch::SourceKind;
use maud::{Markup, PreEscaped, html};
use plotters::prelude::{
    BLACK, ChartBuilder, IntoDrawingArea, LineSeries, Palette, Palette99, PathElement, RGBColor,
    Rectangle, SVGBackend, SeriesLabelPosition, WHITE,
};
use plotters::style::Color;

use super::{HeatMap, shade};
use crate::page::{document, name, scrolled};
use crate::words::percent;

/// Width and height of a picture in pixels.
const SIZE: (u32, u32) = (1080, 540);

/// Colours from few hits to many, distinguished by brightness as well.
const COLOURS: [RGBColor; 5] = [
    RGBColor(0xf8, 0xd7, 0xa0),
    RGBColor(0xf0, 0xa5, 0x5e),
    RGBColor(0xdc, 0x6a, 0x32),
    RGBColor(0xaa, 0x33, 0x20),
    RGBColor(0x5c, 0x14, 0x20),
];

impl HeatMap {
    /// A self-contained page with a map of each kind of hits and their distribution.
    ///
    /// # Errors
    /// In words: the pictures could not be drawn.
    pub fn html(&self) -> Result<String, String> {
        let mut pictures = Vec::new();
        for evidence in self.seen() {
            let words = "hits by time and place; darker is more, by the logarithm.";
            pictures.push((
                self.map_svg(evidence)?,
                format!("{}: {words}", evidence.name()),
            ));
        }
        if !pictures.is_empty() {
            let words = "Share of the hits that the hottest part of the memory has.";
            pictures.push((self.distribution_svg()?, words.to_owned()));
        }
        let body = html! {
            main {
                h1 { "What the daemon saw" }
                p {
                    (self.columns.len()) " epochs in " (self.span()) "; one row is " (Bytes(self.part_bytes))
                    " of a process's memory, in the order of processes and addresses. " (self.left_out())
                }
                @for (picture, words) in &pictures {
                    figure { (PreEscaped(picture)) figcaption { (words) } }
                }
                @if pictures.is_empty() { p { "Nothing was seen yet." } }
                (scrolled("Parts of memory", &self.table()))
            }
        };
        Ok(document("Isotherm: what the daemon saw", &body))
    }

    /// Hits of one kind by time and place, as an SVG picture.
    ///
    /// # Errors
    /// In words: it could not be drawn.
    pub fn map_svg(&self, evidence: SourceKind) -> Result<String, String> {
        self.draw_map(evidence).map_err(|error| error.to_string())
    }

    /// The distribution of each kind of hits over memory, as an SVG picture.
    ///
    /// # Errors
    /// In words: it could not be drawn.
    pub fn distribution_svg(&self) -> Result<String, String> {
        self.draw_distribution().map_err(|error| error.to_string())
    }

    fn draw_map(&self, evidence: SourceKind) -> Result<String, Box<dyn Error>> {
        let hits = self.hits(evidence);
        let most = hits.iter().flatten().copied().max().unwrap_or(0);
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            root.fill(&WHITE)?;
            let seconds = self.span().0 as f64 / 1e9;
            let rows = self.rows.len();
            let mut chart = ChartBuilder::on(&root)
                .caption(evidence.name(), ("sans-serif", 18))
                .margin(12)
                .x_label_area_size(40)
                .y_label_area_size(200)
                .build_cartesian_2d(0.0..seconds.max(1e-9), 0.0..(rows as f64).max(1.0))?;
            let label = |at: &f64| {
                let row = self.rows.get(at.max(0.0) as usize);
                row.map_or_else(String::new, |row| {
                    format!("{} {} {:x}", row.pid, row.name, row.start)
                })
            };
            chart
                .configure_mesh()
                .disable_mesh()
                .y_labels(12)
                .y_label_formatter(&label)
                .x_desc("seconds")
                .draw()?;
            let mut begin = 0.0;
            for (at, column) in self.columns.iter().enumerate() {
                let end = begin + column.span_ns as f64 / 1e9;
                let of_row = |(row, hits): (usize, &Vec<u64>)| {
                    let colour = colour(*hits.get(at)?, most)?;
                    let place = [(begin, row as f64), (end, row as f64 + 1.0)];
                    Some(Rectangle::new(place, colour.filled()))
                };
                chart.draw_series(hits.iter().enumerate().filter_map(of_row))?;
                begin = end;
            }
            root.present()?;
        }
        Ok(text)
    }

    fn draw_distribution(&self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            root.fill(&WHITE)?;
            let mut chart = ChartBuilder::on(&root)
                .caption("Hits by share of memory, hottest first", ("sans-serif", 18))
                .margin(12)
                .x_label_area_size(40)
                .y_label_area_size(56)
                .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
            chart
                .configure_mesh()
                .max_light_lines(0)
                .x_label_formatter(&|share| percent(*share))
                .y_label_formatter(&|share| percent(*share))
                .x_desc("memory")
                .y_desc("hits")
                .draw()?;
            for (index, evidence) in self.seen().enumerate() {
                let curve = self.distribution(evidence);
                let all = curve.bytes().0 as f64;
                let point = |step: u32| {
                    let share = f64::from(step) / 200.0;
                    (share, curve.share_at(Bytes((all * share) as u64)))
                };
                let style = Palette99::pick(index).stroke_width(2);
                chart
                    .draw_series(LineSeries::new((0..=200).map(point), style))?
                    .label(evidence.name())
                    .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], style));
            }
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::LowerRight)
                .background_style(WHITE.mix(0.8))
                .border_style(BLACK)
                .draw()?;
            root.present()?;
        }
        Ok(text)
    }

    /// The rows with what they hold, for those who cannot see the pictures.
    fn table(&self) -> Markup {
        let titles = [
            "process",
            "program",
            "address",
            "resident",
            "fast",
            "accessed bits",
            "trace samples",
        ];
        let sum = |hits: &[u64]| {
            hits.iter()
                .fold(0_u64, |sum, hits| sum.saturating_add(*hits))
        };
        let grids = self.accessed_bits.iter().zip(&self.trace_samples);
        html! {
            table {
                thead { tr { @for title in titles { th { (title) } } } }
                tbody {
                    @for (row, (bits, samples)) in self.rows.iter().zip(grids) {
                        tr {
                            td { (row.pid) }
                            td { (name(&row.name)) }
                            td { (format!("{:x}", row.start)) }
                            td { (Bytes(row.resident_bytes)) }
                            td { (Bytes(row.fast_bytes)) }
                            td { (sum(bits)) }
                            td { (sum(samples)) }
                        }
                    }
                }
            }
        }
    }
}

/// The darker, the more; none where nothing was hit.
fn colour(hits: u64, most: u64) -> Option<RGBColor> {
    let shade = shade(hits, most, COLOURS.len());
    shade.checked_sub(1).map(|at| COLOURS[at])
}
