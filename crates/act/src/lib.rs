//! Act: carries a plan out.
//!
//! Two ways lead into a program. Before it starts, a plan becomes a *configuration file* that the
//! runtime reads once ([`configuration`]). While it runs, a plan becomes *wishes* written into its
//! session file, which the runtime's service thread obeys ([`wishes`]). Executors that dry-run,
//! record or limit wrap the same port ([`wrap`]).
#![forbid(unsafe_code)]

pub mod configuration;
pub mod wishes;
pub mod wrap;
