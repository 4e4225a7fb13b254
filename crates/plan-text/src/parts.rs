//! Reads and writes the `part` lines of a plan: each names the tier of one range of bytes, counted from the start of each data object of a
//! site. The rest of the site is where its `site` line says.

use std::collections::BTreeMap;

use isotherm_model::plan::{Assignment, PlacedPart};
use isotherm_model::site::SiteId;
use isotherm_model::tier::{TierIndex, Tiers};

use super::limits::{VALUE_AT_MOST, WEIGHT_AT_MOST};
use super::line::{Line, PlanTextError};

/// Parts begin and end on pages of this size.
const PAGE: u64 = 4096;

/// The lines of a site's parts.
pub(super) fn write(site: &Assignment, name: impl Fn(TierIndex) -> String) -> Vec<String> {
    let line = |part: &PlacedPart| {
        format!(
            "part {} {} from {} to {} value {} weight {}",
            site.site,
            name(part.tier),
            part.start.exact(),
            part.end.exact(),
            part.value,
            part.weight.exact()
        )
    };
    site.parts.iter().map(line).collect()
}

/// Gives the sites their parts, in any order of the lines.
pub(super) fn add(
    lines: &[Line],
    tiers: &Tiers,
    sites: &mut [Assignment],
) -> Result<(), PlanTextError> {
    let mut of_site = BTreeMap::<SiteId, Vec<(PlacedPart, &Line)>>::new();
    for line in lines {
        let (site, part) = part(line, tiers)?;
        of_site.entry(site).or_default().push((part, line));
    }
    for (id, mut parts) in of_site {
        parts.sort_by_key(|(part, _)| part.start);
        for pair in parts.windows(2) {
            let [(before, first), (after, line)] = pair else {
                continue;
            };
            if before.end > after.start {
                let first = first.number;
                return line.wrong(format!(
                    "the part overlaps that in line {first}; a byte has one tier"
                ));
            }
        }
        let Some(site) = sites.iter_mut().find(|site| site.site == id) else {
            return parts[0]
                .1
                .wrong(format!("site {id} has a part and no `site` line; add one"));
        };
        site.parts = parts.into_iter().map(|(part, _)| part).collect();
    }
    Ok(())
}

fn part(line: &Line, tiers: &Tiers) -> Result<(SiteId, PlacedPart), PlanTextError> {
    let [_, id, tier, ..] = line.words.as_slice() else {
        return line
            .wrong("a part line is `part SITE TIER from SIZE to SIZE value NUMBER weight SIZE`");
    };
    let site: SiteId = line.quantity("site", id)?;
    if site <= SiteId::SHARED {
        return line.wrong(format!(
            "{site} has no data objects of its own; remove the line"
        ));
    }
    let tier = line.tier(tiers, tier)?;
    let mut pairs = line.pairs(3)?;
    let mut size = |name: &str| pairs.quantity_to(name, &WEIGHT_AT_MOST);
    let (start, end, weight) = (size("from")?, size("to")?, size("weight")?);
    if start >= end || !start.0.is_multiple_of(PAGE) || !end.0.is_multiple_of(PAGE) {
        return line.wrong(format!(
            "from {} to {}: a part begins and ends on a page of 4KiB, and ends behind its beginning",
            start.exact(),
            end.exact()
        ));
    }
    let value = pairs.bounded("value", VALUE_AT_MOST)?;
    pairs.done()?;
    Ok((
        site,
        PlacedPart {
            start,
            end,
            tier,
            value,
            weight,
        },
    ))
}
