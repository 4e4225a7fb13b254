//! The daemon: [`service::run`] watches the processes of a machine and, every epoch, moves their hot memory to the fast tier and other
//! memory out of it (to the slow tier, or to compressed memory), and publishes a status. [`replay::run`] decides for a recording, and moves
//! nothing.
//!
//! ```text
//! service            the loop: observe -> decide -> move -> status
//!  |- config         daemon.toml, validated
//!  |- rights         the capabilities that the daemon keeps
//!  |- machine_tiers  the tiers that the configuration names
//!  |- tier_meter     their loads
//!  |- epoch_end      a whole epoch, or the evidence that ends it early
//!  |- kernel_mover   the kernel's own promotion at the daemon's pace
//!  |- energy         nodes emptied and taken offline, to save energy
//!  |- paged          compressed memory as the slow tier
//!  |- dry_run        reports moves and makes none; replay uses it as well
//!  |- status         the figures of an epoch as one value
//!  |- socket         status, top and heat for local users
//!  |- metrics        the status for Prometheus
//!  |- clients        the limits of both on connections
//!  `- notify         systemd's readiness and watchdog
//! replay             a recording through the same step, with modelled moves
//! ```
//!
//! Decisions are made in `pipeline` and `policy`.
#![forbid(unsafe_code)]

mod clients;
pub mod config;
mod dry_run;
mod energy;
mod epoch_end;
mod kernel_mover;
mod machine_tiers;
mod metrics;
mod notify;
mod paged;
pub mod replay;
mod rights;
pub mod service;
pub mod socket;
mod status;
mod tier_meter;
