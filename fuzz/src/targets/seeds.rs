//! What a target brings along to begin with.

/// Inputs by name.
pub type Seeds = Vec<(&'static str, Vec<u8>)>;
