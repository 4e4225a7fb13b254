//! `libisotherm.so` is the allocator that is preloaded into programs. It serves the whole C and C++ allocation interface on jemalloc,
//! distinguishes allocation sites by calling context, gives each block the tier that a plan wants, and also serves large mappings, emulates
//! a slow tier and moves data on request. It makes no decisions: they come in a table ([`isotherm_abi::config`]), and the observations go
//! out in a file ([`isotherm_abi::session`]).
//!
//! ```text
//!  program  --malloc-->  hook (entry shims)  -->  heap, operators, mapping_hooks
//!                                                   |  which context?  context, unwind, site
//!                                                   |  which tier?     plan, arena, placement
//!                                                   v
//!                                  instance (4 x jemalloc)  --extents-->  pool (2 MiB chunks)
//!                                                                           |
//!                          session file  <--published--  tables             v
//!                                                                  mbind, or the emulator
//! ```
//!
//! Modules are listed bottom-up: each uses only those above it. The groups, in the order of the list:
//!
//! - from `errno` to `memory_kind`, the ground: words of a thread, a lock, the state, the configuration, the
//!   layout of the records;
//! - `mover_lock`, `emulation` and `delay` take pages away for a while or delay threads; they know addresses only;
//! - from `session` to `module`, what is published, and what the program asks of its observer;
//! - from `free_map` to `kernel`, memory: the pool, its placement, the arenas, what jemalloc asks for;
//! - from `callers` to `registered`, sites: which code allocates, and what a thread keeps of it;
//! - `staged`, `fork` and `start`, the life of the process;
//! - from `accesses` to `hook`, the hooks: what programs call.
//!
//! The list is the order of the locks too: while the lock of a module is held, only locks of modules
//! above it are taken. The outermost first: `mapping`, `site`, `arena`, `thread_list`, jemalloc's own
//! (`instance`), `pool`, `module`, `text_area`, `hints`, `session`,
//! `mover_lock`.
//!
//! Rules of the house, because this code runs inside other people's programs: no hook allocates
//! through the C library, prints (but for the sentences of `message`) or panics; every lock is free
//! in a forked child (`fork`); any failure leaves a program that runs as without Isotherm.
#![allow(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        dead_code,
        reason = "a test is no allocator: the hooks are left out of it"
    )
)]

mod errno;
mod hidden_symbols;
mod clock;
mod path;
mod shared_file;
mod tls;
mod lock;
mod next_symbol;
mod c_signals;
mod program_action;
mod line_filter;
mod state;
mod sandbox;
mod fast_path;
mod message;
mod plan;
mod split_table;
mod leading_table;
mod config;
mod tables;
mod published_tiers;
mod ledger;
mod shared_room;
mod thread_stacks;
mod memory_kind;

mod mover_lock;
mod emulation;
mod delay;

mod session;
mod observer_request;
mod hints;
mod text_area;
mod module_segments;
mod module;

mod free_map;
mod pool;
mod capacity;
mod placement;
mod page_placement;
mod instance;
mod c_library;
mod block;
mod thread_list;
mod arena;
mod resident;
mod leading;
mod extent;
mod kernel;

mod callers;
mod python;
mod unwind;
mod site;
mod context;
mod objects;
mod thread;
mod split;
mod reentrancy;
mod thread_exit;
mod mapping;
mod statics;
mod registered;

mod staged;
mod fork;
mod start;

mod accesses;
mod for_origin;
mod heap;
mod operators;
mod compiled_site;
mod compiled_site_routes;
mod free_route;
mod resolve_site;
mod interface;
mod jemalloc_api;
mod mapping_hooks;
mod process_hooks;
mod signal_hooks;
mod stack;
#[cfg(target_arch = "x86_64")]
mod entry;
mod hook;
