//! Reads the files of programs: finds the names of frames, allocation sites with their contexts, calls, and static data. With the mappings
//! and the memory of running processes it also finds the data addresses of samples. Neither files nor processes are trusted.
//!
//! ```text
//! resolver          function, file and line of the frames of sites; name_cache keeps them between runs
//!  `- assigned_variable  the variable to which the result of a call is assigned
//! demangled         C++ names as in the source, of static data, named sites and reports
//! compiled_sites    the allocation sites that the compiler pass wrote into a program
//! cloned_contexts   the calling contexts that the link of such a program separated
//! named_sites       the sites of a program by the source positions of a call stack of another build
//! calls             the calls in the functions of a program; they find the sites of a plan in a rebuilt program
//! access_counting   whether a program counts its accesses itself
//! static_data       variables of static storage, by their pages
//!  `- loaded_module  the addresses that they have in a process
//! code              executable mappings of processes; `isotherm_decode` gives the memory operand of an instruction
//!  `- instruction_table  the instructions that were sampled, by their modules
//! ```
//!
//! Symbols, debugging information, section contents and machine code may hold any bytes without
//! a panic or an allocation beyond a named bound.
#![forbid(unsafe_code)]

pub mod access_counting;
mod assigned_variable;
pub mod calls;
pub mod cloned_contexts;
pub mod code;
pub mod compiled_sites;
pub mod demangled;
mod instruction_table;
pub mod loaded_module;
mod machine_calls;
pub mod name_cache;
pub mod named_sites;
mod program_file;
pub mod resolver;
mod segment;
pub mod static_data;
mod symbols_at;
