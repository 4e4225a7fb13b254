//! Computes for `isotherm sensitivity` how much longer a program takes with all data slow (its sensitivity), and how much of that each data
//! object saves if it alone is fast (its benefit; CoMerge, section 3.2): from timed runs (`ObjectRuns`, which a profile can store), or from
//! times predicted from a profile. `objects` lists a program's data objects.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::{Result, bail};
use isotherm_model::count_unit::CountUnit;
use isotherm_model::plan::{Value, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::sensitivity_runs::{FastData, SensitivityRun, SensitivityRuns, TierPair};
use isotherm_model::site::SiteId;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::counted;
use isotherm_policy::sharing::{Benefit, ColocationError, MeasuredObject, MeasuredProgram};
use isotherm_report::sensitivity::{
    MeasuredBenefit, MeasuredSensitivity, ObjectBenefit, PlacementTimes, ProgramSensitivity,
};

/// Fewest samples from which times are predicted: the share of time that they give is then right within a tenth.
const LEAST_SAMPLES: u64 = 100;

/// A data object: a site with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataObject {
    /// The site.
    pub site: SiteId,
    /// Most bytes resident at one time.
    pub size: Bytes,
}

/// The data objects of a program: those with most predicted benefit first, and of equal ones the largest.
pub(crate) fn objects(profile: &Profile, predicted: Option<&MeasuredProgram>) -> Vec<DataObject> {
    let items = isotherm_pipeline::items(profile, Value::Accesses, Weight::PeakRss);
    let items = items.iter();
    let mut objects: Vec<DataObject> = items
        .filter(|item| item.site.is_placeable() && item.weight > Bytes::ZERO)
        .map(|item| DataObject {
            site: item.site,
            size: item.weight,
        })
        .collect();
    let benefit = |object: &DataObject| {
        let program = predicted?;
        Some(Benefit::of(program, of_site(program, object.site)?))
    };
    objects.sort_by_key(|object| (Reverse((benefit(object), object.size)), object.site));
    objects
}

/// Checks that a profile has enough samples for a prediction; one without a timer is refused elsewhere.
///
/// # Errors
/// It has too few samples.
pub(crate) fn check_samples(profile: &Profile) -> Result<()> {
    let timers = profile.sources.iter();
    let timers = timers.filter(|source| source.unit(false) == Some(CountUnit::Time));
    match timers.map(|timer| timer.taken).reduce(u64::saturating_add) {
        Some(samples) if samples < LEAST_SAMPLES => bail!(
            "the profile has {} of the timer, too few for a prediction; record a longer run, or with --frequency 10000",
            counted(samples as usize, "sample")
        ),
        Some(_) | None => Ok(()),
    }
}

/// The times of all rounds.
#[derive(Debug)]
pub(crate) struct ObjectRuns {
    /// With all data slow.
    pub all_slow: Vec<Nanos>,
    /// With all data fast.
    pub all_fast: Vec<Nanos>,
    /// With each measured object alone fast.
    pub alone: Vec<(DataObject, Vec<Nanos>)>,
}

impl ObjectRuns {
    /// The runs as a profile holds them, made on these tiers.
    pub(crate) fn on(&self, tiers: TierPair) -> SensitivityRuns {
        let alone = self.alone.iter();
        let alone = alone.map(|(object, times)| (FastData::Site(object.site), times));
        let bounds = [
            (FastData::Nothing, &self.all_slow),
            (FastData::All, &self.all_fast),
        ];
        let runs = bounds.into_iter().chain(alone).flat_map(|(fast, times)| {
            let rounds = (0..).zip(times);
            rounds.map(move |(round, time)| SensitivityRun {
                fast,
                round,
                time: *time,
            })
        });
        SensitivityRuns {
            tiers,
            runs: runs.collect(),
        }
    }

    /// The program with one time for each placement, which `time` takes from its rounds: that of one round, or the median.
    fn program(
        &self,
        time: impl Fn(&[Nanos]) -> Nanos,
    ) -> Result<MeasuredProgram, ColocationError> {
        let objects = self.alone.iter().map(|(object, times)| MeasuredObject {
            name: object.site.to_string(),
            size: object.size,
            alone: time(times),
        });
        let (fast, slow) = (time(&self.all_fast), time(&self.all_slow));
        MeasuredProgram::new("program", fast, slow, objects.collect())
    }

    /// The program's sensitivity, and the benefit of each object.
    ///
    /// # Errors
    /// There is no round, or one has no time.
    pub(crate) fn figures(
        &self,
    ) -> Result<(MeasuredSensitivity, BTreeMap<SiteId, MeasuredBenefit>)> {
        let median = |times: &[Nanos]| Nanos::median(times).unwrap_or_default();
        let by_median = self.program(median)?;
        let rounds = 0..self.all_fast.len();
        let by_round: Result<Vec<_>, _> = rounds
            .map(|round| self.program(|times| times.get(round).copied().unwrap_or_default()))
            .collect();
        let by_round = by_round?;
        let (Some(all_slow), Some(all_fast)) = (
            PlacementTimes::of(&self.all_slow),
            PlacementTimes::of(&self.all_fast),
        ) else {
            bail!("no round was complete");
        };
        let benefits = self.alone.iter().filter_map(|(object, times)| {
            let with_gap = by_round
                .iter()
                .filter(|program| program.all_fast() < program.all_slow());
            let of_rounds = with_gap.filter_map(|program| {
                let benefit = Benefit::of(program, of_site(program, object.site)?);
                Some(benefit.value())
            });
            let of_rounds: Vec<f64> = of_rounds.collect();
            let measured = MeasuredBenefit {
                of_medians: benefit(&by_median, object.site)?,
                benefit_min: of_rounds.iter().copied().reduce(f64::min),
                benefit_max: of_rounds.iter().copied().reduce(f64::max),
                times: PlacementTimes::of(times)?,
            };
            Some((object.site, measured))
        });
        let benefits = benefits.collect();
        let measured = MeasuredSensitivity {
            program: program(&by_median),
            all_slow,
            all_fast,
        };
        Ok((measured, benefits))
    }
}

/// The sensitivity of a program.
pub(crate) fn program(program: &MeasuredProgram) -> ProgramSensitivity {
    ProgramSensitivity {
        slowdown: program.slowdown(),
        class: program.class().word(),
        class_factor: program.class().factor(),
        printed_factor: program.printed_factor(),
    }
}

/// The benefit of an object; `None` of one that the program does not have.
pub(crate) fn benefit(program: &MeasuredProgram, site: SiteId) -> Option<ObjectBenefit> {
    let object = of_site(program, site)?;
    Some(ObjectBenefit {
        benefit: Benefit::of(program, object).value(),
        co_benefit: Benefit::co_benefit(program, object).value(),
        printed_co_benefit: Benefit::printed_co_benefit(program, object).value(),
    })
}

fn of_site(program: &MeasuredProgram, site: SiteId) -> Option<&MeasuredObject> {
    let name = site.to_string();
    program.objects().iter().find(|object| object.name == name)
}

#[cfg(test)]
mod tests {
    use super::{DataObject, FastData, ObjectRuns, TierPair, check_samples, objects};
    use isotherm_model::batch::SourceReport;
    use isotherm_model::profile::{Meta, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::units::{Bytes, Nanos};
    use isotherm_policy::sharing::{MeasuredObject, MeasuredProgram};

    /// Times in hundredths of a second.
    fn times(hundredths: &[u64]) -> Vec<Nanos> {
        hundredths.iter().map(|it| Nanos(it * 10_000_000)).collect()
    }

    fn object(site: u64) -> DataObject {
        DataObject {
            site: SiteId(site),
            size: Bytes(498 << 20),
        }
    }

    #[test]
    fn benefits_are_those_of_the_papers_table() {
        // Table 3g, fdtd-2d: hz, ey, ex.
        let runs = ObjectRuns {
            all_slow: times(&[17_458]),
            all_fast: times(&[4_955]),
            alone: vec![
                (object(1), times(&[11_407])),
                (object(2), times(&[12_791])),
                (object(3), times(&[13_883])),
            ],
        };
        let (program, benefits) = runs.figures().expect("times");
        assert_eq!(program.program.class, "high");
        assert_eq!(program.program.printed_factor, 3);
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        let found: Vec<_> = benefits
            .values()
            .map(|it| rounded(it.of_medians.benefit))
            .collect();
        assert_eq!(found, [0.48, 0.37, 0.29]);
        assert!((benefits[&SiteId(1)].of_medians.co_benefit - 1.452).abs() < 0.001);
        assert_eq!(program.within_noise(), None);
    }

    #[test]
    fn the_spread_of_a_benefit_is_that_of_the_rounds() {
        let runs = ObjectRuns {
            all_slow: times(&[300, 320, 310]),
            all_fast: times(&[100, 100, 100]),
            alone: vec![(object(1), times(&[200, 210, 260]))],
        };
        let (program, benefits) = runs.figures().expect("times");
        assert_eq!(program.within_noise(), Some(false));
        let stored = runs.on(TierPair::from_text("nodes 0 and nodes 1".to_owned()));
        assert_eq!((stored.rounds(), stored.runs.len()), (3, 9));
        for (fast, hundredths) in [
            (FastData::Nothing, 310),
            (FastData::Site(SiteId(1)), 210),
            (FastData::All, 100),
        ] {
            assert_eq!(stored.median(fast), Some(times(&[hundredths])[0]));
        }
        let spread = [
            benefits[&SiteId(1)].benefit_min,
            benefits[&SiteId(1)].benefit_max,
        ]
        .map(|it| it.expect("a gap"));
        assert!((spread[0] - 50.0 / 210.0).abs() < 1e-9, "{spread:?}");
        assert!((spread[1] - 0.5).abs() < 1e-9, "{spread:?}");
        let no_gap = ObjectRuns {
            all_slow: times(&[90, 95, 110]),
            ..runs
        };
        let (_, benefits) = no_gap.figures().expect("times");
        assert!(benefits[&SiteId(1)].of_medians.benefit.abs() < 1e-9);
        assert_eq!(
            benefits[&SiteId(1)].benefit_min,
            benefits[&SiteId(1)].benefit_max
        );
        assert!(
            benefits[&SiteId(1)].benefit_min < Some(-8.0),
            "{benefits:?}"
        );
        let none = ObjectRuns {
            all_slow: Vec::new(),
            ..no_gap
        };
        assert!(none.figures().is_err());
    }

    /// A profile of sites with these bytes.
    fn profile(sizes: &[u64]) -> Profile {
        let mut profile = Profile::new(Meta::default());
        profile.sites = (100..)
            .zip(sizes)
            .map(|(id, size)| Site {
                peak_rss: Bytes(*size),
                ..Site::new(SiteId(id), SiteKind::Heap)
            })
            .collect();
        profile
    }

    #[test]
    fn objects_are_ordered_by_predicted_benefit_and_then_by_size() {
        let profile = profile(&[10, 0, 30, 20]);
        let sites = |predicted| {
            let objects = objects(&profile, predicted).into_iter();
            objects.map(|object| object.site.0).collect::<Vec<_>>()
        };
        assert_eq!(sites(None), [102, 103, 100]);
        let runs = [(100, 60), (102, 90), (103, 90)];
        let runs = runs.map(|(site, alone)| MeasuredObject {
            name: SiteId(site).to_string(),
            size: Bytes(1),
            alone: Nanos(alone),
        });
        let program = MeasuredProgram::new("p", Nanos(50), Nanos(100), runs.to_vec()).unwrap();
        assert_eq!(sites(Some(&program)), [100, 102, 103]);
    }

    #[test]
    fn few_samples_are_no_prediction() {
        let mut profile = profile(&[10]);
        let timer = |taken| SourceReport {
            taken,
            usable: taken,
            ..SourceReport::new("timer", "")
        };
        for samples in [0, 1, 99] {
            profile.sources = vec![timer(samples)];
            let error = check_samples(&profile).unwrap_err().to_string();
            assert!(error.contains("--frequency"), "{error}");
        }
        profile.sources = vec![timer(100)];
        assert!(check_samples(&profile).is_ok());
    }
}
