//! [`PromotionKnobs`] takes over the settings (knobs) of the kernel's own page promotion (NUMA balancing in mode 2) while the daemon runs,
//! and restores them at its end; after a crash [`restore`] does so by a record on disk.
//!
//! With `numa_balancing` in mode 2 the kernel unmaps pages of slow nodes, round by round, and promotes a page in the context of the program
//! that touches it soon after. The scan period, the hot threshold and the rate limit are files of debugfs and procfs; whether reclaim
//! demotes pages is a file of sysfs.
//!
//! ```text
//! take      record: numa_balancing was 1 set 2     then the writes
//! set       record: scan_period_min_ms was 1000 set 200 100     both values, then the write, then `set 100`
//! release   each knob that has the value that was set gets the one that it had; record removed
//! ```
//!
//! The *record* on disk is written before each write, so that after a kill the next start, or `isotherm daemon --restore`, restores
//! the former values. A knob with a value other than the last one set was changed by another program, and is not restored.
//!
//! Kernel documents: `admin-guide/sysctl/kernel.rst`, `Documentation/scheduler`, `mm/memory-tiers.c`.

mod knob;
mod knob_record;

use std::collections::BTreeMap;
use std::fmt;

pub use knob::{Knob, KnobError, TakenKnob, TakenKnobs};
pub use knob_record::KnobRecord;

use crate::sysfs::Sysfs;

/// The result of restoring the knobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutBack {
    /// Knobs that have their former values.
    pub back: Vec<Knob>,
    /// Knobs that have another owner now, with the value that they keep.
    pub left: Vec<(Knob, u64)>,
    /// Knobs that could not be restored. They stay in the record.
    pub failed: Vec<KnobError>,
}

impl fmt::Display for PutBack {
    /// `8 settings of the kernel's promotion as before; numa_balancing stays 1, which somebody else set`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let back = isotherm_model::words::counted(self.back.len(), "setting");
        write!(f, "{back} of the kernel's promotion as before")?;
        for (knob, value) in &self.left {
            write!(
                f,
                "; {} stays {value}, which somebody else set",
                knob.name()
            )?;
        }
        for error in &self.failed {
            write!(f, "; {error}")?;
        }
        Ok(())
    }
}

/// The kernel's promotion with our values, until it is released.
#[derive(Debug)]
pub struct PromotionKnobs<S> {
    sysfs: S,
    record: KnobRecord,
    taken: TakenKnobs,
}

impl<S: Sysfs> PromotionKnobs<S> {
    /// Takes the knobs over with these values. The former values are on disk before any write. If one cannot be set, all are restored.
    ///
    /// # Errors
    /// The kernel lacks a knob, refuses a value, or the record cannot be written.
    pub fn take(
        sysfs: S,
        record: KnobRecord,
        values: &BTreeMap<Knob, u64>,
    ) -> Result<Self, KnobError> {
        let mut taken = TakenKnobs::new();
        for (knob, value) in values {
            let was = knob.read(&sysfs)?;
            let set = vec![was, *value];
            taken.insert(*knob, TakenKnob { was, set });
        }
        record.write(&taken)?;
        let mut knobs = Self {
            sysfs,
            record,
            taken,
        };
        for knob in Knob::ALL {
            let Some(value) = values.get(&knob) else {
                continue;
            };
            if let Err(error) = knobs.change(knob, *value) {
                knobs.release();
                return Err(error);
            }
        }
        knobs.record.write(&knobs.taken)?;
        Ok(knobs)
    }

    /// Sets other values. Nothing is written where a knob has another owner.
    ///
    /// # Errors
    /// Another owner, a refusal, or the record cannot be written.
    pub fn set(&mut self, values: &BTreeMap<Knob, u64>) -> Result<(), KnobError> {
        self.check()?;
        let mut changes = Vec::new();
        for (knob, value) in values {
            if let Some(taken) = self.taken.get_mut(knob)
                && taken.set.last() != Some(value)
            {
                taken.set.push(*value);
                changes.push((*knob, *value));
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.record.write(&self.taken)?;
        for (knob, value) in changes {
            self.change(knob, value)?;
        }
        self.record.write(&self.taken)
    }

    /// Writes a value that is in the record already.
    fn change(&mut self, knob: Knob, value: u64) -> Result<(), KnobError> {
        knob.write(&mut self.sysfs, value)?;
        if let Some(taken) = self.taken.get_mut(&knob) {
            taken.set = vec![value];
        }
        Ok(())
    }

    /// Checks that every knob still has our value.
    ///
    /// # Errors
    /// Another owner; a knob cannot be read.
    pub fn check(&self) -> Result<(), KnobError> {
        for (knob, taken) in &self.taken {
            let now = knob.read(&self.sysfs)?;
            if !taken.is_ours(now) {
                return Err(KnobError::OtherOwner {
                    file: knob.file(),
                    set: taken.set.last().copied().unwrap_or_default(),
                    now,
                });
            }
        }
        Ok(())
    }

    /// Restores every knob that is still ours.
    pub fn release(&mut self) -> PutBack {
        let put_back = put_back(&self.taken, &self.record, &mut self.sysfs);
        self.taken.clear();
        put_back
    }
}

/// Restores the knobs of a record, such as one that a killed daemon left; `None` where there is no record.
///
/// # Errors
/// The record is damaged.
pub fn restore(record: &KnobRecord, sysfs: &mut impl Sysfs) -> Result<Option<PutBack>, KnobError> {
    let taken = record.read()?;
    Ok((!taken.is_empty()).then(|| put_back(&taken, record, sysfs)))
}

/// Restores knobs, the switch first; the record keeps knobs that failed.
fn put_back(taken: &TakenKnobs, record: &KnobRecord, sysfs: &mut impl Sysfs) -> PutBack {
    let (mut done, mut left) = (PutBack::default(), TakenKnobs::new());
    for (knob, taken) in taken.iter().rev() {
        let put = knob.read(sysfs).and_then(|now| match taken.is_ours(now) {
            _ if now == taken.was => Ok(None),
            true => knob.write(sysfs, taken.was).map(|()| None),
            false => Ok(Some(now)),
        });
        match put {
            Ok(None) => done.back.push(*knob),
            Ok(Some(now)) => done.left.push((*knob, now)),
            Err(error) => {
                left.insert(*knob, taken.clone());
                done.failed.push(error);
            }
        }
    }
    if let Err(error) = record.write(&left) {
        done.failed.push(error);
    }
    done
}

#[cfg(test)]
mod tests;
