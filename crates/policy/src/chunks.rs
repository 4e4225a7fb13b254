//! Selects the ranges of data objects that go to fast memory, chunk by chunk (ATMem, section 4): chunks with many missed reads a byte are
//! *critical*, and so are chunks among many critical ones. [`select`] takes objects with their counts and a capacity, and returns these
//! ranges, for policy `atmem` in a plan and in an optimization during a run.
//!
//! A *data object* is one contiguous range of a process, for example an extent, with a count of missed reads for each of its pages. It is
//! divided into equal *chunks*. Because sampling misses some critical chunks, a tree over the chunks promotes those among many. The result
//! is the contiguous ranges of critical chunks.
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
