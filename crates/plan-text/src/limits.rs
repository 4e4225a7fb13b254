//! `VALUE_AT_MOST` and `WEIGHT_AT_MOST` are the largest value and the most bytes that the reader accepts in the `site`, `part`, `leading`
//! and `standing` lines of a plan.

use isotherm_model::units::Bytes;

/// Highest count of accesses, bytes or nanoseconds: a hundred years of nanoseconds, and small
/// enough that sums do not overflow.
pub(super) const VALUE_AT_MOST: u64 = 1 << 62;
/// Largest weight of a site: the address space of five-level page tables. A capacity may be larger,
/// which means no limit.
pub(super) const WEIGHT_AT_MOST: Bytes = Bytes(1 << 57);
