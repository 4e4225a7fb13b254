//! The daemon: watches the processes of a machine, moves hot memory to fast tiers every epoch, and reports.
//!
//! ```text
//! service   the loop: observe -> decide -> move -> status
//!  |- config    daemon.toml, validated; rights   the capabilities that it keeps
//!  |- epoch_end  a whole epoch, or the evidence that ends it early
//!  |- machine_tiers  the tiers that the configuration names; tier_meter  their loads
//!  |- kernel_mover  the kernel's own promotion at the daemon's pace
//!  |- dry_run   reports moves and makes none; replay uses it as well
//!  |- paged     compressed memory as the slow tier
//!  |- status    the figures of an epoch as one value
//!  |- socket    status, top and heat for local users; metrics for Prometheus
//!  |            both within the limits of `clients`
//!  `- notify    systemd's readiness and watchdog
//! replay    a recording through the same step, with modelled moves
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
