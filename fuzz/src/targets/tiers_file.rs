//! The tiers file.

pub(crate) fn check(data: &[u8]) -> bool {
    let path = "machine.toml";
    let Ok(text) = str::from_utf8(data) else {
        return false;
    };
    let Ok(read) = isotherm_topology::parse(text, path) else {
        return false;
    };
    let printed = isotherm_topology::print(&read);
    assert_eq!(
        isotherm_topology::parse(&printed, path).as_ref(),
        Ok(&read),
        "printed as\n{printed}"
    );
    true
}
