//! Renders the hit rate by capacity of a [`Simulation`] as an HTML page: a chart with a line for each policy, and a table.

use isotherm_model::units::Bytes;
use maud::html;
use serde_json::{Value, json};

use super::text::{by_capacity, hit_rate, policies};
use super::{SimulatedCapacity, Simulation};
use crate::page::{chart, document, name, table};

impl Simulation {
    /// As one HTML page that needs no network.
    #[must_use]
    pub fn html(&self) -> String {
        let heading = self.heading();
        let mut facts = heading.lines();
        let counted = self.counted.noun();
        let label = format!("Share of the {counted} that fast memory serves");
        let rows = policies(&self.capacities);
        let rates = by_capacity(&rows, &self.capacities, "policy", hit_rate);
        let title = "Hit rate by fast memory";
        let body = html! {
            header {
                p.brand { "Isotherm simulation" }
                h1 { (name(&self.input)) }
                p.headline { (facts.next().unwrap_or_default()) }
                @for fact in facts { p { (fact) } }
            }
            main { (chart("sweep", title, &format!("{label}, by policy."), &label, &table("Hit rates", &rates))) }
        };
        let charts = json!({ "sweep": self.figures(&label) });
        document(&format!("{title}: {}", name(&self.input)), &body, &charts)
    }

    /// A series for each policy, smallest capacity first.
    fn figures(&self, label: &str) -> Value {
        let mut capacities: Vec<&SimulatedCapacity> = self.capacities.iter().collect();
        capacities.sort_by_key(|at| at.fast_bytes);
        let labels = capacities.iter().map(|at| Bytes(at.fast_bytes).to_string());
        let policies = capacities.first().map_or(&[][..], |at| &at.policies);
        let series = policies.iter().enumerate().map(|(index, policy)| {
            let rate = |(at, capacity): (usize, &&SimulatedCapacity)| {
                Some(json!([at, capacity.policies.get(index)?.hit_rate]))
            };
            let points = capacities.iter().enumerate().filter_map(rate);
            json!({ "name": name(&policy.policy), "points": points.collect::<Vec<_>>() })
        });
        json!({
            "kind": "lines",
            "categories": labels.collect::<Vec<_>>(),
            "x": "fast memory",
            "y": label,
            "series": series.collect::<Vec<_>>(),
        })
    }
}
