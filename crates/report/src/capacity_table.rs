//! [`CapacityCurves`] holds a [`CapacityCurve`] for each way to divide the memory of a program (chunks and sites of a profile, pages of a
//! trace), and formats them for `isotherm curve`: as a plot of the finest with tables of all, and as JSON. The daemon's heat map shows the
//! curve of its rows by the same text.

use std::collections::BTreeMap;

use isotherm_model::batch::Process;
use isotherm_model::count_unit::CountUnit;
use isotherm_model::footprint::Footprint;
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Accesses, Bytes};
use serde::Serialize;

use crate::capacity_curve::{CapacityCurve, CapacityNeed, CapacityPoint, NEEDS, PARTS, Piece};
use crate::table::DataTable;
use crate::words::percent;
use crate::{json, plot, sites};

/// Columns of the curve at most.
const COLUMNS: usize = 100;

/// The curves of one program: one for each way to divide its memory, with the words for its
/// pieces, finest first.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityCurves {
    /// Unit of the accesses.
    pub counted: CountUnit,
    /// The footprint, of which capacities are shares.
    pub footprint: Footprint,
    /// The curves.
    pub curves: Vec<(&'static str, CapacityCurve)>,
}

impl CapacityCurves {
    /// The curves by chunk, the finest division that a profile has, and by site, the data that a plan places.
    #[must_use]
    pub fn of_profile(profile: &Profile) -> Self {
        let mut chunks = BTreeMap::<(Process, u64, SiteId), Accesses>::new();
        for heat in profile.heat.iter().filter(|heat| heat.site.is_placeable()) {
            *chunks
                .entry((heat.process, heat.address, heat.site))
                .or_default() += heat.accesses;
        }
        let chunks = chunks.into_values().map(|accesses| Piece {
            accesses,
            bytes: profile.meta.chunk,
        });
        let rows = sites::rows(profile, &profile.accesses_by_site(), None);
        Self {
            counted: profile.counted(),
            footprint: profile.footprint(),
            curves: vec![
                ("chunks", CapacityCurve::new(chunks.collect())),
                ("sites", sites::curve(&rows)),
            ],
        }
    }

    /// True where no access fell on memory that could be placed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let empty = |(_, curve): &(&str, CapacityCurve)| curve.accesses() == Accesses::ZERO;
        self.curves.iter().all(empty)
    }

    /// The curve and both tables, for a terminal of this width.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        let Some((pieces, finest)) = self.curves.first() else {
            return String::new();
        };
        let width = columns.clamp(60, COLUMNS) - plot::MARGIN - 1;
        let end = self.footprint.0.max(finest.bytes());
        let mut text = format!(
            "{}, a footprint of {}. Share of the {} by capacity, hottest {pieces} first\n",
            self.counted.counted(finest.accesses().0),
            self.footprint,
            self.counted.noun()
        );
        let at = |way: f64| finest.share_at(Bytes((end.0 as f64 * way) as u64));
        text += &plot::area(width, at);
        text += &plot::ends(width, "0 B", &end.to_string());
        text + "\n" + &self.shares() + "\n" + &self.needs()
    }

    /// The table of the share of accesses that each share of the footprint serves.
    fn shares(&self) -> String {
        let parts = Vec::from_iter(PARTS.iter().enumerate());
        let table = DataTable::of(&parts)
            .left("of the footprint", |row| match row.1 {
                1 => "all".to_owned(),
                part => format!("1/{part}"),
            })
            .right("capacity", |row| Bytes(self.footprint.0.0 / row.1));
        let curves = self.curves.iter().fold(table, |table, (pieces, curve)| {
            let points = curve.points(self.footprint);
            let share = move |row: &(usize, _)| percent(points[row.0].share_of_accesses);
            table.right(&format!("{pieces} whole or in part"), share)
        });
        curves.render()
    }

    /// The table of the bytes that serve each share of the accesses.
    fn needs(&self) -> String {
        let shares = Vec::from_iter(NEEDS.iter().enumerate());
        let title = format!("of the {}", self.counted.noun());
        let table = DataTable::of(&shares).left(&title, |row| format!("{} %", row.1));
        let curves = self.curves.iter().fold(table, |table, (pieces, curve)| {
            let needs = curve.needs();
            let need = move |row: &(usize, _)| Bytes(needs[row.0].capacity_bytes);
            table.right(&format!("{pieces} needed"), need)
        });
        curves.render()
    }

    /// The curves as JSON, documented in `docs/formats.md`, ending in a line feed.
    #[must_use]
    pub fn json(&self) -> String {
        let of_curve = |(pieces, curve): &(&'static str, CapacityCurve)| JsonCurve {
            pieces,
            bytes: curve.bytes().0,
            accesses: curve.accesses().0,
            points: curve.points(self.footprint),
            needs: curve.needs(),
        };
        let printed = Json {
            schema_version: SCHEMA_VERSION,
            counted: self.counted,
            footprint_bytes: self.footprint.0.0,
            curves: self.curves.iter().map(of_curve).collect(),
        };
        json::json(&printed)
    }
}

/// Version of the JSON form; fields may be added within it, none is renamed.
const SCHEMA_VERSION: u32 = 2;

#[derive(Serialize)]
struct Json<'a> {
    schema_version: u32,
    #[serde(serialize_with = "crate::words::noun")]
    counted: CountUnit,
    footprint_bytes: u64,
    curves: Vec<JsonCurve<'a>>,
}

#[derive(Serialize)]
struct JsonCurve<'a> {
    pieces: &'a str,
    bytes: u64,
    accesses: u64,
    points: Vec<CapacityPoint>,
    needs: Vec<CapacityNeed>,
}

#[cfg(test)]
mod tests {
    use super::CapacityCurves;
    use crate::capacity_curve::tests::example;
    use crate::capacity_curve::{CapacityCurve, Piece};
    use isotherm_model::count_unit::CountUnit;
    use isotherm_model::footprint::Footprint;
    use isotherm_model::units::{Accesses, Bytes};

    #[test]
    fn pieces_without_bytes_or_accesses_and_no_pieces_are_no_failure() {
        let empty = CapacityCurve::new(Vec::new());
        assert!(empty.share_at(Bytes(5)).abs() < f64::EPSILON);
        let odd = CapacityCurve::new(vec![
            Piece {
                accesses: Accesses(u64::MAX),
                bytes: Bytes(0),
            },
            Piece {
                accesses: Accesses(0),
                bytes: Bytes(u64::MAX),
            },
        ]);
        assert!((odd.share_at(Bytes(0)) - 1.0).abs() < f64::EPSILON);
        for curve in [empty, odd] {
            let curves = of(curve, 28);
            assert!(curves.text(80).contains("hottest chunks first"));
            assert!(curves.json().contains("\"needs\""));
        }
    }

    fn of(curve: CapacityCurve, footprint: u64) -> CapacityCurves {
        CapacityCurves {
            counted: CountUnit::Time,
            footprint: Footprint(Bytes(footprint)),
            curves: vec![("chunks", curve)],
        }
    }

    #[test]
    fn shares_of_capacity_are_of_the_footprint_and_not_of_what_was_sampled() {
        let curves = of(example(), 32);
        let point = &curves.curves[0].1.points(curves.footprint)[5];
        assert_eq!(point.capacity_bytes, 8, "a quarter of 32");
        assert!((point.share_of_accesses - 0.8375).abs() < 1e-12);
        let text = curves.text(80);
        let first = "100 samples of time waiting for memory, a footprint of 32 B. Share of the time \
                     waiting for memory by capacity";
        assert!(text.starts_with(first), "{text}");
    }
}
