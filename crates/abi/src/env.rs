//! Names the environment variables that the runtime reads at its start: the command line sets those of the configuration and of the session
//! directory; a person who debugs the runtime sets [`VERBOSE`].

/// Path of the configuration file ([`crate::config`]). Absent: the runtime passes everything
/// through.
pub const CONFIG: &str = "ISOTHERM_CONFIG";

/// Directory in which each process creates its session file ([`crate::session`]). Absent: nothing
/// is published.
pub const SESSION: &str = "ISOTHERM_SESSION";

/// `1` lets the runtime print its start to standard error (debugging aid; off by default, because a program's
/// output must not change).
pub const VERBOSE: &str = "ISOTHERM_VERBOSE";
