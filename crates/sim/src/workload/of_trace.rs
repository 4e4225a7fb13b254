//! [`Workload::of_trace`] makes a [`Workload`], which the simulator replays, of the accesses of a trace: it numbers the pages in the order
//! of first touch, and divides the accesses into epochs by time or by their number.

use std::collections::HashMap;

use isotherm_model::footprint::Footprint;
use isotherm_model::trace::Access;
use isotherm_model::units::{Bytes, Nanos};

use super::{EpochEnd, EpochLength, MOST_EPOCHS, MOST_PAGES, Touches, Workload, WorkloadError};

impl Workload {
    /// Numbers the pages of a trace and divides it into epochs. Epochs without accesses count.
    /// Takes 4 bytes of memory per access.
    ///
    /// # Errors
    /// No access at all; a page size that is not a power of two; an epoch of length zero; accesses
    /// that are not in the order of time; more pages or epochs than can be replayed.
    pub fn of_trace(
        accesses: impl IntoIterator<Item = Access>,
        page: Bytes,
        epoch: EpochLength,
    ) -> Result<Self, WorkloadError> {
        let mut cut = Cut::new(epoch)?;
        let mut numbers = Numbers::new(page)?;
        let mut touches = Vec::new();
        let mut epochs = Vec::new();
        for (at, access) in (0_u64..).zip(accesses) {
            let end = EpochEnd {
                touches: touches.len(),
                known: numbers.next,
            };
            let ended = cut.epoch_of(at, access.time)? as usize;
            epochs.resize(ended, end);
            touches.push(numbers.of(access.address)? << 1 | u32::from(access.write));
        }
        if touches.is_empty() {
            return Err(WorkloadError::Empty);
        }
        epochs.push(EpochEnd {
            touches: touches.len(),
            known: numbers.next,
        });
        let bytes = page.0.saturating_mul(u64::from(numbers.next));
        Ok(Self {
            page,
            footprint: Footprint(Bytes(bytes)),
            accesses: touches.len() as u64,
            touches: Touches::Trace(touches),
            epochs,
            places: Vec::new(),
            objects: Vec::new(),
            left_out: 0,
        })
    }
}

/// Divides a trace into epochs by time or by accesses.
struct Cut {
    length: EpochLength,
    first: Option<Nanos>,
    last: Nanos,
}

impl Cut {
    const fn new(length: EpochLength) -> Result<Self, WorkloadError> {
        match length {
            EpochLength::Time(Nanos(0)) | EpochLength::Accesses(0) => {
                Err(WorkloadError::EpochLength)
            }
            _ => Ok(Self {
                length,
                first: None,
                last: Nanos::ZERO,
            }),
        }
    }

    /// The epoch of access number `at`, from 0: the number of epochs that ended before it.
    fn epoch_of(&mut self, at: u64, time: Nanos) -> Result<u64, WorkloadError> {
        let access = at.saturating_add(1);
        let first = *self.first.get_or_insert(time);
        let before = std::mem::replace(&mut self.last, time);
        if time < before {
            return Err(WorkloadError::Order {
                access,
                time,
                before,
            });
        }
        let after = time.saturating_sub(first);
        let epoch = match self.length {
            EpochLength::Time(length) => after.0 / length.0,
            EpochLength::Accesses(length) => at / length,
        };
        if epoch >= MOST_EPOCHS {
            return Err(WorkloadError::TooManyEpochs { access, after });
        }
        Ok(epoch)
    }
}

/// Page numbers in the order of first touch.
struct Numbers {
    shift: u32,
    known: HashMap<u64, u32>,
    next: u32,
    /// The page of the last access: most accesses stay on one page.
    last: Option<(u64, u32)>,
}

impl Numbers {
    fn new(page: Bytes) -> Result<Self, WorkloadError> {
        if !page.0.is_power_of_two() {
            return Err(WorkloadError::PageSize(page));
        }
        Ok(Self {
            shift: page.0.trailing_zeros(),
            known: HashMap::new(),
            next: 0,
            last: None,
        })
    }

    fn of(&mut self, address: u64) -> Result<u32, WorkloadError> {
        let page = address >> self.shift;
        if let Some((last, number)) = self.last
            && last == page
        {
            return Ok(number);
        }
        let number = *self.known.entry(page).or_insert(self.next);
        if number == self.next {
            if number as usize >= MOST_PAGES {
                return Err(WorkloadError::TooManyPages);
            }
            self.next += 1;
        }
        self.last = Some((page, number));
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::{EpochLength, Workload, WorkloadError};
    use crate::machine::Traffic;
    use isotherm_model::trace::Access;
    use isotherm_model::units::{Bytes, Nanos};

    const PAGE: Bytes = Bytes(4096);

    fn access((time, address, write): (u64, u64, bool)) -> Access {
        Access {
            time: Nanos(time),
            address,
            write,
        }
    }

    fn workload(list: &[(u64, u64, bool)], epoch: EpochLength) -> Result<Workload, WorkloadError> {
        Workload::of_trace(list.iter().copied().map(access), PAGE, epoch)
    }

    #[test]
    fn pages_are_numbered_by_first_touch_and_epochs_without_accesses_count() {
        let trace = [
            (100, 0x7000, false),
            (101, 0x2000, true),
            (109, 0x7fff, false),
            (130, 0x9000, false),
            (131, 0x2008, true),
        ];
        let workload = workload(&trace, EpochLength::Time(Nanos(10))).unwrap();
        assert_eq!((workload.pages(), workload.epochs()), (3, 4));
        assert_eq!(workload.footprint().0, Bytes(3 * 4096));
        let new: Vec<_> = (0..4).map(|epoch| workload.new_pages(epoch)).collect();
        assert_eq!(new, [0..2, 2..2, 2..2, 2..3]);
        let mut counts = [0; 6];
        let all = workload.tally(0, &mut counts);
        assert_eq!(
            all,
            Traffic {
                reads: 2,
                writes: 1
            }
        );
        assert_eq!(counts, [2, 0, 0, 1, 0, 0]);
        workload.tally(3, &mut counts);
        assert_eq!(counts, [0, 0, 0, 1, 1, 0]);
        assert_eq!(workload.accessed(3).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn epochs_by_accesses_are_of_equal_length_but_the_last() {
        let trace = [(5, 0, false); 5];
        let workload = workload(&trace, EpochLength::Accesses(2)).unwrap();
        let lengths: Vec<_> = (0..3).map(|epoch| workload.accessed(epoch).len()).collect();
        assert_eq!(lengths, [2, 2, 1]);
    }

    #[test]
    fn what_cannot_be_replayed_is_refused_with_its_place_and_a_remedy() {
        let second = EpochLength::Time(Nanos(1_000_000_000));
        let refusal = |list: &[_], epoch| workload(list, epoch).unwrap_err().to_string();
        assert!(refusal(&[], second).contains("no access"));
        assert_eq!(
            refusal(&[(7, 0, false), (6, 0, false)], second),
            "access 2 is at 6 ns, before its predecessor at 7 ns; sort the trace by time"
        );
        let far = refusal(&[(0, 0, false), (u64::MAX, 0, false)], second);
        assert!(far.starts_with("access 2 comes "), "{far}");
        assert!(refusal(&[(0, 0, false)], EpochLength::Time(Nanos(0))).contains("length 0"));
        for page in [0, 3000] {
            let error = Workload::of_trace([], Bytes(page), second).unwrap_err();
            assert_eq!(error, WorkloadError::PageSize(Bytes(page)));
        }
    }

    #[test]
    fn addresses_and_pages_at_the_limits_are_pages_like_others() {
        let trace = [(0, u64::MAX, false), (u64::MAX, 0, true)];
        let epoch = EpochLength::Time(Nanos(u64::MAX));
        assert_eq!(workload(&trace, epoch).unwrap().pages(), 2);
        let huge = Bytes(1 << 63);
        let whole = Workload::of_trace(trace.map(access), huge, epoch).unwrap();
        assert_eq!(whole.footprint().0, Bytes(u64::MAX));
    }
}
