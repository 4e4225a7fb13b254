//! Sizes, times and capacities as people write them.

use isotherm_model::units::{Bytes, Capacity, Nanos};

pub(crate) fn check(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else {
        return false;
    };
    let (bytes, nanos) = (text.parse::<Bytes>(), text.parse::<Nanos>());
    if let Ok(bytes) = bytes {
        assert_eq!(bytes.exact().parse(), Ok(bytes), "exact text of {text:?}");
        assert!(!bytes.to_string().is_empty());
    }
    if let Ok(nanos) = nanos {
        assert_eq!(nanos.exact().parse(), Ok(nanos), "exact text of {text:?}");
        assert!(!nanos.to_string().is_empty());
    }
    let capacity = text.parse::<Capacity>();
    if let Ok(capacity) = capacity {
        assert!(!capacity.to_string().is_empty());
        match capacity {
            Capacity::Bytes(size) => assert_eq!(bytes, Ok(size), "{text:?}"),
            // A byte of rounding where the footprint has more digits than a double.
            Capacity::Share(_) => assert!(capacity.of(Bytes(1 << 50)).0 <= 1 << 50, "{text:?}"),
        }
    }
    bytes.is_ok() || nanos.is_ok() || capacity.is_ok()
}
