//! How many accesses the hottest bytes serve: the table and the curve of `isotherm curve`.
//!
//! ```text
//! pieces by hotness   |■■■■|■■|■■■■■■■■|■■■■■■■■■■■■■■|   one square, so many bytes
//! accesses            | 60 | 20|  15   |      5       |
//! with 8 squares      60 + 20 + 15 · 2/8 = 83.75
//! ```
//!
//! A piece that does not fit counts by the share of it that does, so the curve is what no placement
//! of these pieces can beat.

use std::collections::BTreeMap;

use isotherm_model::batch::Process;
use isotherm_model::count_unit::CountUnit;
use isotherm_model::footprint::Footprint;
use isotherm_model::hotness::hotter_first;
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Accesses, Bytes};
use serde::Serialize;

use crate::table::{left, render, right};
use crate::words::{percent, share};
use crate::{plot, sites};

/// Divisors of the footprint: the table shows 1/128 of it to all of it.
const PARTS: [u64; 8] = [128, 64, 32, 16, 8, 4, 2, 1];
/// Shares of the accesses for which the bytes that they need are shown, in percent.
const NEEDS: [u64; 5] = [50, 80, 90, 95, 99];
/// Columns of the curve at most.
const COLUMNS: usize = 100;

/// A part of a program's memory that is placed as a whole: a chunk, a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Accesses to it.
    pub accesses: Accesses,
    /// Its size.
    pub bytes: Bytes,
}

/// Accesses by capacity, for one way to divide the memory into pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapacityCurve {
    /// Sums up to and with each piece, hottest first.
    sums: Vec<(u64, u64)>,
}

/// The shares at one capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityPoint {
    /// Fast memory.
    pub capacity_bytes: u64,
    /// Share of the footprint that this is, 0 to 1.
    pub share_of_footprint: f64,
    /// Share of the accesses that the hottest bytes of this capacity serve, 0 to 1.
    pub share_of_accesses: f64,
}

/// The bytes that serve a share of the accesses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityNeed {
    /// Share of the accesses, 0 to 1.
    pub share_of_accesses: f64,
    /// The fewest bytes that serve them, hottest first.
    pub capacity_bytes: u64,
}

impl CapacityCurve {
    /// The curve of these pieces, in whatever order they come; equally hot ones stay in that order.
    #[must_use]
    pub fn new(mut pieces: Vec<Piece>) -> Self {
        let key = |piece: &Piece| (piece.accesses.0, piece.bytes, ());
        pieces.sort_by(|a, b| hotter_first(key(a), key(b)));
        let mut sum = (0_u64, 0_u64);
        let sums = pieces.iter().map(|piece| {
            sum.0 = sum.0.saturating_add(piece.bytes.0);
            sum.1 = sum.1.saturating_add(piece.accesses.0);
            sum
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.sums.last().map_or(0, |sum| sum.0))
    }

    /// All accesses.
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        Accesses(self.sums.last().map_or(0, |sum| sum.1))
    }

    /// Share of the accesses, 0 to 1, that the hottest bytes of a capacity serve.
    #[must_use]
    pub fn share_at(&self, capacity: Bytes) -> f64 {
        let whole = self.sums.partition_point(|sum| sum.0 <= capacity.0);
        let before = whole.checked_sub(1).map_or((0, 0), |last| self.sums[last]);
        let part = self.sums.get(whole).map_or(0.0, |sum| {
            let fits = share(capacity.0 - before.0, sum.0 - before.0);
            (sum.1 - before.1) as f64 * fits
        });
        let all = self.accesses().0;
        if all == 0 {
            return 0.0;
        }
        (before.1 as f64 + part) / all as f64
    }

    /// The points of the table.
    #[must_use]
    pub fn points(&self, footprint: Footprint) -> Vec<CapacityPoint> {
        let point = |part: u64| {
            let capacity = Bytes(footprint.0.0 / part);
            CapacityPoint {
                capacity_bytes: capacity.0,
                share_of_footprint: 1.0 / part as f64,
                share_of_accesses: self.share_at(capacity),
            }
        };
        PARTS.into_iter().map(point).collect()
    }

    /// The fewest bytes for each of some shares of the accesses, whole pieces.
    #[must_use]
    pub fn needs(&self) -> Vec<CapacityNeed> {
        let all = u128::from(self.accesses().0);
        let need = |percent: u64| {
            let enough = |sum: &(u64, u64)| u128::from(sum.1) * 100 >= all * u128::from(percent);
            let at = self.sums.partition_point(|sum| !enough(sum));
            CapacityNeed {
                share_of_accesses: percent as f64 / 100.0,
                capacity_bytes: self.sums.get(at).map_or(0, |sum| sum.0),
            }
        };
        NEEDS.into_iter().map(need).collect()
    }
}

/// The curves of one program: one for each way to divide its memory, with the words for its
/// pieces, finest first.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityCurves {
    /// What the accesses are counts of.
    pub counted: CountUnit,
    /// What the shares of capacity are of.
    pub footprint: Footprint,
    /// The curves.
    pub curves: Vec<(&'static str, CapacityCurve)>,
}

impl CapacityCurves {
    /// By chunk, which is as fine as a profile knows, and by site, which is what a plan places.
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

    /// For a terminal of so many columns.
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

    /// What is served at each share of the footprint.
    fn shares(&self) -> String {
        let mut titles = vec![left("of the footprint"), right("capacity")];
        let title = |pieces: &str| right(&format!("{pieces} whole or in part"));
        titles.extend(self.curves.iter().map(|(pieces, _)| title(pieces)));
        let row = |(index, part): (usize, &u64)| {
            let mut row = vec![match part {
                1 => "all".to_owned(),
                part => format!("1/{part}"),
            }];
            row.push(Bytes(self.footprint.0.0 / part).to_string());
            let points = |curve: &CapacityCurve| curve.points(self.footprint);
            let share = |curve: &CapacityCurve| percent(points(curve)[index].share_of_accesses);
            row.extend(self.curves.iter().map(|(_, curve)| share(curve)));
            row
        };
        let rows: Vec<_> = PARTS.iter().enumerate().map(row).collect();
        render(&titles, &rows)
    }

    /// What is needed to serve each share of the accesses.
    fn needs(&self) -> String {
        let mut titles = vec![left(&format!("of the {}", self.counted.noun()))];
        let title = |pieces: &str| right(&format!("{pieces} needed"));
        titles.extend(self.curves.iter().map(|(pieces, _)| title(pieces)));
        let row = |(index, share): (usize, &u64)| {
            let need = |curve: &CapacityCurve| Bytes(curve.needs()[index].capacity_bytes);
            let needs = self.curves.iter();
            let needs = needs.map(|(_, curve)| need(curve).to_string());
            std::iter::once(format!("{share} %")).chain(needs).collect()
        };
        let rows: Vec<Vec<String>> = NEEDS.iter().enumerate().map(row).collect();
        render(&titles, &rows)
    }

    /// The same as JSON, documented in `docs/formats.md`, ending in a line feed.
    #[must_use]
    pub fn json(&self) -> String {
        let of_curve = |(pieces, curve): &(&'static str, CapacityCurve)| JsonCurve {
            pieces,
            bytes: curve.bytes().0,
            accesses: curve.accesses().0,
            points: curve.points(self.footprint),
            needs: curve.needs(),
        };
        let json = Json {
            schema_version: SCHEMA_VERSION,
            counted: self.counted,
            footprint_bytes: self.footprint.0.0,
            curves: self.curves.iter().map(of_curve).collect(),
        };
        // Strings, numbers and lists of them: serialising cannot fail.
        serde_json::to_string_pretty(&json).unwrap_or_default() + "\n"
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
    use super::{CapacityCurve, CapacityCurves, Piece};
    use isotherm_model::count_unit::CountUnit;
    use isotherm_model::footprint::Footprint;
    use isotherm_model::units::{Accesses, Bytes};

    /// The example at the head of the file: hotness 15, 10, 1.9 and 0.4.
    fn example() -> CapacityCurve {
        let pieces = [(5, 14), (15, 8), (60, 4), (20, 2)];
        let piece = |(accesses, bytes): (u64, u64)| Piece {
            accesses: Accesses(accesses),
            bytes: Bytes(bytes),
        };
        CapacityCurve::new(pieces.into_iter().map(piece).collect())
    }

    #[test]
    fn the_hottest_pieces_serve_first_and_the_last_one_in_part() {
        let curve = example();
        assert_eq!(
            (curve.bytes(), curve.accesses()),
            (Bytes(28), Accesses(100))
        );
        for (capacity, share) in [(0, 0.0), (4, 0.6), (8, 0.8375), (28, 1.0), (99, 1.0)] {
            let at = curve.share_at(Bytes(capacity));
            assert!((at - share).abs() < 1e-12, "{capacity}: {at}");
        }
    }

    #[test]
    fn what_a_share_of_the_accesses_needs_is_whole_pieces() {
        let needs = example().needs();
        let bytes: Vec<u64> = needs.iter().map(|need| need.capacity_bytes).collect();
        assert_eq!(bytes, [4, 6, 14, 14, 28]);
    }

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
    fn a_piece_of_no_bytes_and_no_accesses_changes_nothing_wherever_it_comes() {
        let pieces = [(0, 0), (5, 14), (0, 0), (15, 8), (60, 4), (0, 0), (20, 2)];
        let piece = |(accesses, bytes): (u64, u64)| Piece {
            accesses: Accesses(accesses),
            bytes: Bytes(bytes),
        };
        for first in 0..pieces.len() {
            let turned = pieces.iter().cycle().skip(first).take(pieces.len());
            let curve = CapacityCurve::new(turned.copied().map(piece).collect());
            assert_eq!(curve.needs(), example().needs());
            let at = curve.share_at(Bytes(8));
            assert!((at - 0.8375).abs() < 1e-12, "{at}");
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
