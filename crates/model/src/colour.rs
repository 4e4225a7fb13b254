//! [`Colour`] labels the expected use of data, hot or cold, for energy policies and Java heaps; [`ColourDevices`] is the tier and the
//! number of its memory devices for the data of one colour (Cross-Layer, Olson et al., TACO 2018, section 4.1).
//!
//! ```text
//!     site --tier--> colour --mapping--> tier, and how many of its devices
//! ```
//!
//! Each colour has a tier of its own, so the tier of a site determines its colour, and a plan does not record colours of sites.

use crate::tier::TierIndex;
use crate::units::Bytes;

variant_words! {
    /// The expected use of data.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Colour {
        /// Used often; orange in the paper. Unknown data is hot, so that data that proves hot does not wake a sleeping device
        /// (section 7.1.1).
        #[default]
        Hot = "hot",
        /// Used rarely; blue in the paper.
        Cold = "cold",
    }
}

/// Most devices of a colour, far more than any machine has.
pub const DEVICES_AT_MOST: u32 = 65_536;

/// The memory that holds the data of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColourDevices {
    /// The colour.
    pub colour: Colour,
    /// The tier whose memory represents its devices.
    pub tier: TierIndex,
    /// Number of devices; 0 where the other colour needs all.
    pub devices: u32,
    /// Most bytes that one of them holds.
    pub device: Bytes,
}
