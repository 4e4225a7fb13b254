//! Renders a [`SensitivityTable`] as an HTML page: bars for the benefit of each object, measured beside predicted, and the table.

use maud::html;
use serde_json::{Value, json};

use super::{ObjectSensitivity, SensitivityTable};
use crate::page::{chart, document, name, table};

/// The title of the chart.
const TITLE: &str = "Benefit of each data object alone in fast memory";

/// What a bar says.
const WORDS: &str = "The part of the time between all data slow and all data fast that the program saves when only this object is fast.";

impl SensitivityTable {
    /// As one HTML page that needs no network.
    #[must_use]
    pub fn html(&self) -> String {
        let facts = self.facts();
        let (command, facts) = facts
            .split_first()
            .map_or(("", &[][..]), |(first, rest)| (first, rest));
        let rows = self.rows();
        let table = table("Benefits", &self.table(&rows, usize::MAX));
        let body = html! {
            header {
                p.brand { "Isotherm sensitivity" }
                h1 { (name(command)) }
                @for fact in facts { p { (fact) } }
                @for note in self.notes() { p { (note) } }
            }
            main { (chart("benefits", TITLE, WORDS, TITLE, &table)) }
        };
        let charts = json!({ "benefits": self.figures() });
        document(&format!("{TITLE}: {}", name(command)), &body, &charts)
    }

    /// The bars of each object: those that were measured, and those that were predicted.
    fn figures(&self) -> Value {
        let names = self.objects.iter().map(|object| name(&object.object));
        let series = |name: &str, figure: fn(&ObjectSensitivity) -> Option<Value>| {
            let bars: Vec<Option<Value>> = self.objects.iter().map(figure).collect();
            bars.iter()
                .any(Option::is_some)
                .then(|| json!({ "name": name, "bars": bars }))
        };
        let measured = series("measured", |object| {
            let it = object.measured.as_ref()?;
            let benefit = it.of_medians.benefit;
            let least = it.benefit_min.unwrap_or(benefit);
            let most = it.benefit_max.unwrap_or(benefit);
            Some(json!([benefit, least, most]))
        });
        let predicted = series("predicted from one recorded run", |object| {
            let benefit = object.predicted?.benefit;
            Some(json!([benefit, benefit, benefit]))
        });
        let series: Vec<Value> = measured.into_iter().chain(predicted).collect();
        json!({
            "kind": "bars",
            "categories": names.collect::<Vec<_>>(),
            "x": "benefit",
            "series": series,
        })
    }
}
