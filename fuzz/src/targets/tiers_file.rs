//! The tiers file.

use isotherm_observe::tiers;

pub(crate) fn check(data: &[u8]) -> bool {
    let path = "machine.toml";
    let Ok(text) = str::from_utf8(data) else {
        return false;
    };
    let Ok(read) = tiers::parse(text, path) else {
        return false;
    };
    let printed = tiers::print(&read);
    assert_eq!(
        tiers::parse(&printed, path).as_ref(),
        Ok(&read),
        "printed as\n{printed}"
    );
    true
}
