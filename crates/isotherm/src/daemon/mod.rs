//! The daemon: watches processes, decides at the end of every epoch, moves, and tells.
//!
//! `config` is the file, `rights` what may be done, `service` the loop, `status` what it comes to in
//! figures, `replay` a recording in place of the machine; `socket`, `metrics` and `notify` tell it to others, to whom `clients` keeps bounds. What is decided is decided in
//! `pipeline` and `policy`.

mod clients;
pub(crate) mod config;
mod metrics;
mod notify;
pub(crate) mod replay;
pub(crate) mod rights;
pub(crate) mod service;
pub(crate) mod socket;
mod status;
