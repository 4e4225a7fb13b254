//! The hit rate by capacity, one line a policy.

use std::error::Error;

use isotherm_model::units::Bytes;
use plotters::prelude::{
    BLACK, ChartBuilder, Circle, IntoDrawingArea, LineSeries, Palette, Palette99, PathElement,
    SVGBackend, SeriesLabelPosition, WHITE,
};
use plotters::style::Color;

use super::Simulation;
use crate::words::percent;

/// Width and height in pixels.
const SIZE: (u32, u32) = (960, 540);
/// Share of a step that is left free at both sides of the plot.
const SIDE: f64 = 0.2;

impl Simulation {
    /// As a plot of the hit rate by capacity, one line a policy: an SVG that needs nothing else.
    ///
    /// # Errors
    /// The plotting library could not draw, in its own words.
    pub fn svg(&self) -> Result<String, String> {
        draw(self).map_err(|error| error.to_string())
    }
}

/// Draws the plot.
///
/// # Errors
/// The library could not draw; writing to memory, it has no known reason not to.
fn draw(simulation: &Simulation) -> Result<String, Box<dyn Error>> {
    let mut capacities: Vec<_> = simulation.capacities.iter().collect();
    capacities.sort_by_key(|at| at.fast_bytes);
    let last = capacities.len().saturating_sub(1) as f64;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(
                format!("{}: hit rate by fast memory", simulation.input),
                ("sans-serif", 18),
            )
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(56)
            .build_cartesian_2d(-SIDE..last + SIDE, 0.0..1.0)?;
        let label = |at: &f64| {
            let whole = (at - at.round()).abs() < 1e-9;
            let at = capacities.get(at.round().max(0.0) as usize);
            at.filter(|_| whole)
                .map(|at| Bytes(at.fast_bytes).to_string())
                .unwrap_or_default()
        };
        chart
            .configure_mesh()
            .max_light_lines(0)
            .x_labels(capacities.len())
            .x_label_formatter(&label)
            .y_label_formatter(&|share| percent(*share))
            .x_desc("fast memory")
            .y_desc(format!(
                "{} served by fast memory",
                simulation.counted.noun()
            ))
            .draw()?;
        let names = capacities.first().map_or(&[][..], |at| &at.policies);
        for (index, policy) in names.iter().enumerate() {
            let color = Palette99::pick(index).stroke_width(2);
            let rate = |at: usize| Some((at as f64, capacities[at].policies.get(index)?.hit_rate));
            let points: Vec<(f64, f64)> = (0..capacities.len()).filter_map(rate).collect();
            chart
                .draw_series(LineSeries::new(points.clone(), color))?
                .label(&policy.policy)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], color));
            let dots = points
                .into_iter()
                .map(|point| Circle::new(point, 3, color.filled()));
            chart.draw_series(dots)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .draw()?;
        root.present()?;
    }
    Ok(text)
}
