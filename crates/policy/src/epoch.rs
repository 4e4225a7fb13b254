//! Epoch policies: at the turn of every epoch they choose the pages of the fast tier (where data is paged out, those that stay in memory),
//! in a run, in the daemon and in the simulator. [`by_name`] makes each of them by its name but [`LoadBalance`].
//!
//! TMP (section IV) moves pages in batches at the turn of an epoch, because one TLB shootdown then serves all of them, and ranks pages by
//! the observations of a whole epoch. Each file but `hottest` and `registry` holds one policy, an
//! [`EpochPolicy`](isotherm_model::port::EpochPolicy); the caller chooses the sources of a rank.
//!
//! [`LoadBalance`] is not among [`POLICIES`]: it needs the latencies of the tiers under load, which are known only in a run that counts
//! bytes by tier, and its name is that of a site policy wherever both kinds are offered.
//!
//! ```
//! use isotherm_model::{page::{EpochView, PageIndex}, port::EpochPolicy};
//! use isotherm_policy::epoch::History;
//!
//! let view = EpochView {
//!     previous_ranks: &[1, 7, 5],
//!     next_ranks: None,
//!     fast: &[true, false, false],
//!     capacity: 1,
//!     hit: 1,
//!     loads: None,
//! };
//! let mut wanted = Vec::new();
//! History::default().decide(&view, &mut wanted);
//! assert_eq!(wanted, [PageIndex(1)]);
//! ```

mod first_come_first_allocated;
mod history;
mod hottest;
mod load_balance;
mod oracle;
mod payback;
mod registry;

pub use first_come_first_allocated::FirstComeFirstAllocated;
pub use history::History;
pub use load_balance::LoadBalance;
pub use oracle::Oracle;
pub use payback::{MoveCosts, Payback};
pub use registry::{FIRST_COME, MakeEpochPolicy, POLICIES, by_name, is_first_come, names, of_run};
