//! Names of sites.

use isotherm_model::site::SiteId;

pub(crate) fn check(data: &[u8]) -> bool {
    let Some(site) = str::from_utf8(data)
        .ok()
        .and_then(|text| text.parse::<SiteId>().ok())
    else {
        return false;
    };
    assert_eq!(site.to_string().parse(), Ok(site), "printed and read again");
    true
}
