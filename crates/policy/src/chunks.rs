//! Chunk selection inside data objects (ATMem, section 4): which ranges of large objects go fast.
//!
//! A *data object* is one contiguous range of a process, for example an extent, with a count of
//! missed reads for each of its pages. It is divided into equal *chunks*. Chunks with many samples
//! are *critical*. Because sampling misses some, a tree over the chunks promotes chunks among many
//! critical ones. The result is the contiguous ranges of critical chunks.
//!
//! ```text
//! counts  | 9 0 8 7 0 0 0 0 |     counts of chunks            granularity, equation 1
//! sampled | # . # # . . . . |     priority >= theta           local, equations 2 and 3
//! tree    |  3/4  |   0/4   |     critical leaves / leaves    tree; theta' by equations 4 and 5
//! fast    | # + # # . . . . |     a node with ratio >= theta' has its other leaves promoted
//! range   |=======|               one range, with its reason  ranges, capacity
//! ```
//!
//! Every stage is linear in the number of chunks, except sorting the objects by address and, by the prose reading of equation 2,
//! the priorities of an uneven object. If the critical chunks exceed the fast tier, the best are kept.
//!
//! Not part of this module: the source of the counts, and the moves.

mod capacity;
mod cut;
mod global;
mod granularity;
mod local;
mod object;
mod object_selection;
mod parameters;
mod ranges;
mod selection;
mod tree;

pub use cut::CutReading;
pub use object::{DataObject, ObjectError};
pub use object_selection::ObjectSelection;
pub use parameters::{ChunkParameters, ParameterError};
pub use ranges::{FastRange, Fit};
pub use selection::{ChunkSelection, SelectionError, select};

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod property_tests;
