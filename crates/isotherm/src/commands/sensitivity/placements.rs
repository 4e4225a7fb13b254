//! `Placements` has the placements that `isotherm sensitivity` times: all data slow, then each chosen site alone fast, then all data fast.
//! All are plans of the same sites on tiers without a limit of capacity, so that they differ in the tier of data only. `check` refuses a
//! run that did not allocate the site that was to be fast.

use std::path::Path;

use anyhow::{Result, bail};
use isotherm_console::Console;
use isotherm_model::profile::Profile;
use isotherm_model::sensitivity_runs::FastData;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;

use crate::commands::selected_placement::SelectedPlacement;
use crate::launch::EndedProgram;
use crate::sensitivity::DataObject;
use crate::timed_runs::{TimedPlacement, without_limit};

/// The placements of a program: all slow, then each object alone, then all fast.
pub(super) struct Placements {
    /// Their runs.
    pub timed: Vec<TimedPlacement>,
    of_data: Vec<(FastData, SelectedPlacement)>,
}

impl Placements {
    /// The placements of these objects, with their names in messages. `cache` is the size of the caches on machines emulated by time.
    pub(super) fn new(
        profile: &Profile,
        (tiers, cache): (&Tiers, Option<Bytes>),
        objects: &[(DataObject, String)],
        program: &Path,
        console: Console,
    ) -> Self {
        let tiers = without_limit(tiers);
        let alone = objects
            .iter()
            .map(|(object, name)| (FastData::Site(object.site), format!("{name} alone fast")));
        let all_slow = (FastData::Nothing, "all slow".to_owned());
        let all_fast = (FastData::All, "all fast".to_owned());
        let placements = std::iter::once(all_slow).chain(alone).chain([all_fast]);
        let (mut timed, mut of_data) = (Vec::new(), Vec::new());
        for (fast, name) in placements {
            let placement = placed(profile, &tiers, fast, program);
            timed.push(TimedPlacement {
                name,
                configuration: placement.configuration(program, cache),
                is_bound: !matches!(fast, FastData::Site(_)),
            });
            of_data.push((fast, placement));
        }
        // The plans of the objects fit this build in the same way.
        of_data[0].1.fitted.say(console);
        Self { timed, of_data }
    }

    /// Refuses a run that did not allocate the object that was to be alone fast: its time would be that of all slow.
    ///
    /// # Errors
    /// The run did not allocate the object.
    pub(super) fn check(&self, number: usize, ended: &EndedProgram) -> Result<()> {
        let Some((FastData::Site(site), placement)) = self.of_data.get(number) else {
            return Ok(());
        };
        if placement.was_made(*site, ended) {
            return Ok(());
        }
        bail!(
            "{}: site {site} was not made by this program, so its benefit cannot be measured; the profile is of `{}`, or of another \
             build: record again, or leave out --profile",
            self.timed[number].name,
            placement.recorded_command()
        )
    }
}

/// The plan of a placement, in this build. Data that the plan does not name is slow, except where all data is fast.
fn placed(profile: &Profile, tiers: &Tiers, fast: FastData, program: &Path) -> SelectedPlacement {
    let default_tier = match fast {
        FastData::All => TierIndex::FASTEST,
        FastData::Nothing | FastData::Site(_) => tiers.slowest(),
    };
    let is_fast = |site| match fast {
        FastData::Nothing => false,
        FastData::Site(object) => site == object,
        FastData::All => true,
    };
    SelectedPlacement::new(
        profile,
        (tiers, default_tier),
        "sensitivity",
        program,
        is_fast,
    )
}

#[cfg(test)]
mod tests {
    use super::Placements;
    use crate::sensitivity::DataObject;
    use isotherm_console::Console;
    use isotherm_model::emulation::Emulation;
    use isotherm_model::profile::{Meta, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::{TierIndex, Tiers};
    use isotherm_model::units::Bytes;
    use std::path::Path;

    #[test]
    fn each_object_is_fast_alone_between_all_slow_and_all_fast() {
        let mut profile = Profile::new(Meta::default());
        profile.meta.depth = 4;
        profile.sites = [11, 12]
            .map(|id| Site {
                peak_rss: Bytes(1 << 20),
                ..Site::new(SiteId(id), SiteKind::Heap)
            })
            .to_vec();
        let emulation = Emulation::preset("cxl").expect("a preset");
        let tiers = Tiers::emulated(Bytes(1), Bytes(1 << 40), emulation);
        let objects = [11, 12].map(|id| {
            let site = SiteId(id);
            let size = Bytes(1 << 20);
            (DataObject { site, size }, format!("object {id}"))
        });
        let nowhere = Path::new("/nonexistent");
        let tiers = (&tiers, Some(Bytes(3 << 20)));
        let all = Placements::new(&profile, tiers, &objects, nowhere, Console::new(true));
        let (fast, slow) = (TierIndex(0), TierIndex(1));
        let found: Vec<_> = all
            .timed
            .iter()
            .map(|timed| {
                let configuration = &timed.configuration;
                let mut entries = configuration.entries.clone();
                entries.sort_unstable();
                let tiers: Vec<TierIndex> = entries.iter().map(|(_, tier)| *tier).collect();
                (timed.name.as_str(), configuration.default_tier, tiers)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("all slow", slow, vec![slow, slow]),
                ("object 11 alone fast", slow, vec![fast, slow]),
                ("object 12 alone fast", slow, vec![slow, fast]),
                ("all fast", fast, vec![fast, fast]),
            ]
        );
        let caches = all.timed.iter().map(|timed| timed.configuration.cache);
        assert!(
            caches
                .into_iter()
                .all(|cache| cache == Some(Bytes(3 << 20)))
        );
        let lifted = all.timed[0].configuration.tiers.as_ref().expect("tiers");
        assert_eq!(lifted.all()[0].capacity, Bytes(u64::MAX));
    }
}
