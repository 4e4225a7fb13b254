//! Session files, as requests are written into them.

use isotherm_act::placement_requests::PlacementRequestWriter;
use isotherm_model::outcome::Action;
use isotherm_model::port::Executor;
use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;

use super::session;

pub(crate) fn check(data: &[u8]) -> bool {
    let directory = tempfile::tempdir().expect("a directory for the file");
    let (process, name) = session::name();
    let path = directory.path().join(name);
    std::fs::write(&path, data).expect("the file can be written");
    let actions = [SiteId::SHARED, SiteId(0x55), SiteId(0x66)].map(|site| Action {
        process,
        site,
        tier: TierIndex(1),
        bytes: Bytes(4096),
    });
    let mut requests = PlacementRequestWriter::new(directory.path().to_owned());
    let outcomes = requests.execute(&actions, &[]);
    assert_eq!(outcomes.len(), actions.len());
    let after = std::fs::read(&path).expect("is there");
    assert_eq!(after.len(), data.len(), "a request makes no file longer");
    let header = size_of::<isotherm_abi::session::SessionHeader>().min(data.len());
    assert_eq!(
        after[..header],
        data[..header],
        "a request leaves the header alone"
    );
    outcomes
        .iter()
        .any(|outcome| outcome.fate == isotherm_model::outcome::Fate::Requested)
}
