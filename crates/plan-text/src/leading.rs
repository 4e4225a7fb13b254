//! Reads and writes the `leading` lines of a plan: each places the memory that a site allocates first, up to a size, in another tier than
//! the rest of the site.

use isotherm_model::plan::{Assignment, LeadingBytes};
use isotherm_model::site::SiteId;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;

use super::limits::{VALUE_AT_MOST, WEIGHT_AT_MOST};
use super::line::{Line, PlanTextError};

/// The line of a site's leading memory, if it has some.
pub(super) fn write(site: &Assignment, name: impl Fn(TierIndex) -> String) -> Option<String> {
    let first = site.leading?;
    let (site, value) = (site.site, first.value);
    let (tier, bytes) = (name(first.tier), first.bytes.exact());
    Some(format!("leading {site} {tier} bytes {bytes} value {value}"))
}

/// Gives the sites their leading memory, in any order of the lines.
pub(super) fn add(
    lines: &[Line],
    tiers: &Tiers,
    sites: &mut [Assignment],
) -> Result<(), PlanTextError> {
    for line in lines {
        let leading = leading(line, tiers)?;
        let id = leading.site;
        let Some(site) = sites.iter_mut().find(|site| site.site == id) else {
            return line.wrong(format!(
                "site {id} has leading memory and no `site` line; add one"
            ));
        };
        if site.is_divided() {
            return line.wrong(format!(
                "site {id} has parts or leading memory already; remove one of the lines"
            ));
        }
        site.leading = Some(leading);
    }
    Ok(())
}

fn leading(line: &Line, tiers: &Tiers) -> Result<LeadingBytes, PlanTextError> {
    let [_, id, tier, ..] = line.words.as_slice() else {
        return line.wrong("a leading line is `leading SITE TIER bytes SIZE value NUMBER`");
    };
    let site: SiteId = line.quantity("site", id)?;
    if site <= SiteId::SHARED {
        return line.wrong(format!("{site} has no memory of its own; remove the line"));
    }
    let tier = line.tier(tiers, tier)?;
    let mut pairs = line.pairs(3)?;
    let bytes = pairs.quantity_to("bytes", &WEIGHT_AT_MOST)?;
    if bytes == Bytes::ZERO {
        return line.wrong("bytes 0B: no memory is first; remove the line");
    }
    let value = pairs.bounded("value", VALUE_AT_MOST)?;
    pairs.done()?;
    Ok(LeadingBytes {
        site,
        tier,
        bytes,
        value,
    })
}

#[cfg(test)]
mod tests {
    use isotherm_model::plan::LeadingBytes;
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

    use crate::{read, write};

    const PLAN: &str = "isotherm-plan 1
policy thermos
value accesses
weight peak-rss
depth 4
command \"./app\"
tier near nodes 0 capacity 1GiB placement preferred
tier far nodes 1 capacity 64GiB placement bind
default far
standing planned 0 first-touch 0 bound 0 total 0
site 00000000000000ab far value 9 weight 256MiB
site shared far value 0 weight 4KiB
";

    #[test]
    fn a_site_has_leading_memory_or_parts() {
        let with = |text: &str| read(&format!("{PLAN}{text}\n"));
        let plan = with("leading ab near bytes 64MiB value 3").unwrap();
        let mut sites = plan.assignments.iter();
        let site = sites.find(|site| site.site == SiteId(0xab)).unwrap();
        let leading = LeadingBytes {
            site: SiteId(0xab),
            tier: TierIndex(0),
            bytes: Bytes(64 << 20),
            value: 3,
        };
        assert_eq!(site.leading, Some(leading));
        assert_eq!(site.bytes_in(TierIndex(0)), Bytes(64 << 20));
        assert_eq!(site.bytes_in(TierIndex(1)), Bytes(192 << 20));
        assert_eq!(read(&write(&plan)).unwrap(), plan);
        let wrong = |text: &str| with(text).unwrap_err().to_string();
        for (text, error) in [
            ("leading ab", "a leading line is"),
            ("leading ab near bytes 0B value 0", "no memory is first"),
            ("leading ab near bytes 256PiB value 0", "out of range"),
            ("leading ab near bytes 1MiB", "`value` is missing"),
            (
                "leading ab near bytes 1MiB value 0 weight 1MiB",
                "`weight` is not known",
            ),
            ("leading 77 near bytes 1MiB value 0", "no `site` line"),
            (
                "leading shared near bytes 1MiB value 0",
                "no memory of its own",
            ),
            (
                "leading ab near bytes 1MiB value 0\nleading ab near bytes 2MiB value 0",
                "already",
            ),
            (
                "part ab near from 0B to 8KiB value 0 weight 8KiB\nleading ab near bytes 1MiB value 0",
                "already",
            ),
        ] {
            assert!(wrong(text).contains(error), "{text}: {}", wrong(text));
        }
    }
}
