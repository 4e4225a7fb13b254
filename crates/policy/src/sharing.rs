//! Policies that share one fast tier among programs on one machine, for `isotherm colocate` (CoMerge, Doudali and Gavrilovska, MEMSYS
//! 2017). They decide, from run times that are measured or predicted, how many bytes of each data object of each program are fast.
//!
//! ```text
//! measured runs --Colocation--> a sharing policy --SharedPlan--> which bytes of which object
//! ```
//!
//! The paper's policies place whole objects in an order of their own and skip objects that do not
//! fit: see [`PaperPolicy`].
//! [`LeastSlowdown`] is ours: it splits objects into chunks, minimises the summed slowdown, slows no
//! program much more than equal split does, and can keep a floor for each program.
//!
//! ```
//! use isotherm_model::units::{Bytes, Nanos};
//! use isotherm_policy::sharing::{Colocation, MeasuredObject, MeasuredProgram, PaperPolicy, SharingPolicy};
//!
//! let object = |name: &str, alone| MeasuredObject {
//!     name: name.to_owned(),
//!     size: Bytes(100),
//!     alone: Nanos(alone),
//! };
//! let objects = vec![object("grid", 30), object("log", 90)];
//! let program = MeasuredProgram::new("sim", Nanos(20), Nanos(100), objects).unwrap();
//! let colocation = Colocation::new(vec![program]).unwrap();
//! let plan = PaperPolicy::BlindMerge.share(&colocation, Bytes(150)).unwrap();
//! assert_eq!(plan.fast_bytes("sim", "grid"), Bytes(100));
//! assert_eq!(plan.fast_bytes("sim", "log"), Bytes(0));
//! ```

mod benefit;
mod colocation;
mod fairness;
mod floor;
mod increment;
mod least_slowdown;
mod paper_policy;
mod policy;
mod rivals;
mod slowdown;
mod whole_objects;

pub use benefit::Benefit;
pub use colocation::{
    Colocation, ColocationError, Grant, LONGEST_RUN, MeasuredObject, MeasuredProgram, Rival,
    SensitivityClass, SharedPlan,
};
pub use floor::FloorError;
pub use least_slowdown::{DEFAULT_CHUNK, DEFAULT_FAIRNESS, LeastSlowdown, least_possible};
pub use paper_policy::PaperPolicy;
pub use policy::SharingPolicy;
pub use slowdown::{slowdowns, summed_slowdown};

#[cfg(test)]
mod golden;
#[cfg(test)]
mod properties;
