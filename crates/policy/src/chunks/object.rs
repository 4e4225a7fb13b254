//! [`DataObject`] is the input of chunk selection: one contiguous range of memory with a count of missed reads for each page, or each
//! larger grain, in address order. [`in_order`] checks and sorts the objects; an [`ObjectError`] says why they were rejected.

use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

use crate::knapsack::PAGE;

/// One registered allocation or extent with its counts.
#[derive(Clone, Copy, Debug)]
pub struct DataObject<'a> {
    /// Process that owns the address space.
    pub process: Process,
    /// Site that allocated it.
    pub site: SiteId,
    /// First address, a multiple of the page.
    pub address: u64,
    /// Length. The last page may be used in part.
    pub bytes: Bytes,
    /// Bytes that one count covers, a multiple of the page: a page, or the chunk of a profile.
    pub grain: Bytes,
    /// Reads that missed the last-level cache, one count for each grain from the first address on: of a sampling source, its samples
    /// times the period.
    pub missed_reads: &'a [u64],
}

/// The reason why objects were rejected. Addresses name the object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The first address is not a multiple of the page.
    #[error(
        "the object at {address:#x} begins inside a page; round it down to a multiple of {PAGE} bytes"
    )]
    Unaligned {
        /// First address.
        address: u64,
    },
    /// The grain is zero or not a multiple of the page.
    #[error(
        "the object at {address:#x} has counts for every {}; that must be a multiple of {PAGE} \
         bytes, and not zero",
        grain.exact()
    )]
    Grain {
        /// First address.
        address: u64,
        /// The grain given.
        grain: Bytes,
    },
    /// The counts do not cover the object exactly.
    #[error(
        "the object at {address:#x} has {given} counts, and its length and grain ask for {wanted}"
    )]
    Counts {
        /// First address.
        address: u64,
        /// Counts given.
        given: usize,
        /// Counts required by its length and grain.
        wanted: u64,
    },
    /// The object ends beyond the last address.
    #[error(
        "the object at {address:#x} has {}, more than the address space after it",
        bytes.exact()
    )]
    PastTheEnd {
        /// First address.
        address: u64,
        /// Length.
        bytes: Bytes,
    },
    /// Two objects of one process have a byte in common.
    #[error(
        "the objects at {address:#x} and {other:#x} of process {} overlap; give each byte to one object",
        process.pid
    )]
    Overlap {
        /// First address of the lower one.
        address: u64,
        /// First address of the other.
        other: u64,
        /// The process.
        process: Process,
    },
}

impl DataObject<'_> {
    fn check(&self) -> Result<(), ObjectError> {
        let address = self.address;
        if !address.is_multiple_of(PAGE) {
            return Err(ObjectError::Unaligned { address });
        }
        if self.grain == Bytes::ZERO || !self.grain.0.is_multiple_of(PAGE) {
            let grain = self.grain;
            return Err(ObjectError::Grain { address, grain });
        }
        if address.checked_add(self.bytes.0).is_none() {
            let bytes = self.bytes;
            return Err(ObjectError::PastTheEnd { address, bytes });
        }
        let wanted = self.bytes.0.div_ceil(self.grain.0);
        let given = self.missed_reads.len();
        if given as u64 != wanted {
            return Err(ObjectError::Counts {
                address,
                given,
                wanted,
            });
        }
        Ok(())
    }
}

/// The objects sorted by process and address.
pub(super) fn in_order<'o, 'a>(
    objects: &'o [DataObject<'a>],
) -> Result<Vec<&'o DataObject<'a>>, ObjectError> {
    for object in objects {
        object.check()?;
    }
    let mut ordered: Vec<&DataObject<'a>> = objects.iter().collect();
    // The key holds every field that affects the result; only empty objects can tie by process and
    // address.
    ordered.sort_unstable_by_key(|o| (o.process, o.address, o.bytes, o.site, o.grain));
    let mut below: Option<&DataObject<'a>> = None;
    for object in ordered.iter().filter(|object| object.bytes > Bytes::ZERO) {
        if let Some(lower) = below
            && lower.process == object.process
            && lower.address + lower.bytes.0 > object.address
        {
            return Err(ObjectError::Overlap {
                address: lower.address,
                other: object.address,
                process: lower.process,
            });
        }
        below = Some(object);
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::{DataObject, ObjectError, in_order};
    use isotherm_model::batch::Process;
    use isotherm_model::site::SiteId;
    use isotherm_model::units::Bytes;

    fn object(address: u64, bytes: u64, counts: &[u64]) -> DataObject<'_> {
        DataObject {
            process: Process { pid: 7, image: 0 },
            site: SiteId(2),
            address,
            bytes: Bytes(bytes),
            grain: Bytes(4096),
            missed_reads: counts,
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused_by_address_and_neighbours_are_not() {
        let good = object(0x1000, 4097, &[1, 2]);
        let refused = |bad: DataObject<'_>| in_order(&[good, bad]).unwrap_err().to_string();
        for (bad, part) in [
            (object(0x3001, 1, &[1]), "0x3001 begins inside a page"),
            (object(0x3000, 4096, &[1, 2]), "0x3000 has 2 counts"),
            (object(0xffff_ffff_ffff_f000, 4096, &[1]), "4KiB, more than"),
            (object(0x2000, 1, &[1]), "0x1000 and 0x2000 of process 7"),
            (object(0x1000, 1, &[1]), "overlap"),
        ] {
            assert!(refused(bad).contains(part), "{}", refused(bad));
        }
        let grain = DataObject {
            grain: Bytes(100),
            ..good
        };
        assert!(refused(grain).contains("every 100B"), "{}", refused(grain));
        let zero = DataObject {
            grain: Bytes(0),
            ..good
        };
        assert!(matches!(in_order(&[zero]), Err(ObjectError::Grain { .. })));
        let elsewhere = DataObject {
            process: Process { pid: 8, image: 0 },
            ..good
        };
        let pages = [object(0x3000, 4096, &[1]), elsewhere, good];
        let order = in_order(&pages).unwrap();
        let facts: Vec<_> = order.iter().map(|o| (o.process.pid, o.address)).collect();
        assert_eq!(facts, [(7, 0x1000), (7, 0x3000), (8, 0x1000)]);
    }
}
