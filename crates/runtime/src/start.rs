//! Starts the runtime, once after each `exec`: decides the mode by the environment and the configuration file ([`decide`]), at the first
//! allocation or when the library is loaded, and sets up the modules that this mode uses. At `exit` it counts and measures for the last
//! time, gives the process's room in the tiers back and marks the session as ended.
//!
//! The first allocation may come from the loader, before the C library knows the environment.
//! Until then everything goes to instance 0, outside the pool, where any mode can free it.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, Ordering};

use isotherm_abi::config::{RuntimeMode, TierRecord, TierRecordKind};
use isotherm_abi::session::{OffReason, SessionLayout, SessionState};
use isotherm_abi::{CHUNK_SHIFT, env};

use crate::arena;
use crate::c_library;
use crate::c_signals;
use crate::capacity;
use crate::config::{self, Config};
use crate::delay;
use crate::emulation;
use crate::extent;
use crate::fast_path::HOT;
use crate::fork;
use crate::free_map;
use crate::instance;
use crate::line_filter;
use crate::message;
use crate::placement;
use crate::pool;
use crate::python;
use crate::resident;
use crate::session;
use crate::site;
use crate::split;
use crate::staged;
use crate::state;
use crate::statics;
use crate::tables;
use crate::thread;
use crate::thread_exit;

unsafe extern "C" {
    /// The program's environment; null before the C library has it.
    static environ: *const *const c_char;
}

/// The value of an environment variable, read without the C library's lock.
fn variable(name: &str) -> Option<&'static CStr> {
    // SAFETY: the environment is a null-terminated list of strings; no other thread exists yet
    // that could change it.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry);
            if let Some(rest) = text.to_bytes().strip_prefix(name.as_bytes())
                && rest.first() == Some(&b'=')
            {
                return Some(CStr::from_ptr((*entry).add(name.len() + 1)));
            }
            entry = entry.add(1);
        }
    }
    None
}

/// The value of a variable that controls Isotherm for this program. None where the program runs with more
/// rights than the user who started it (setuid, file capabilities): the environment then belongs to another
/// user, and names files that the program would make or read with its own rights.
fn setting(name: &str) -> Option<&'static CStr> {
    // SAFETY: the C library reads the vector that the kernel gave the program.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    variable(name).filter(|_| !secure)
}

/// Decides the mode, if that is possible yet. Returns whether the mode is decided now.
pub(crate) fn decide() -> bool {
    static STARTED: AtomicBool = AtomicBool::new(false);
    // SAFETY: reading the pointer is what the C library itself does.
    if unsafe { environ.is_null() } {
        return false;
    }
    // Allocations during the decision go to instance 0.
    if STARTED.swap(true, Ordering::AcqRel) {
        return HOT.state.get() != state::UNDECIDED;
    }
    let decided = match setting(env::CONFIG) {
        None => state::DIRECT,
        Some(path) => configure(path).unwrap_or_else(|reason| {
            session::off(reason);
            // Nothing came from the pool yet.
            pool::close();
            state::DIRECT
        }),
    };
    if decided == state::DIRECT {
        instance::start(1, true);
    }
    fork::start();
    free_map::decide(decided);
    HOT.state.set(decided);
    if setting(env::VERBOSE).is_some_and(|value| value == c"1") {
        let range = pool::range();
        message::line(format_args!("isotherm: state {decided}, pool {range:x?}"));
    }
    true
}

/// Sets everything up for a configuration. Returns the state that follows.
fn configure(path: &CStr) -> Result<u8, OffReason> {
    let wanted = config::load(path)?.filter(|config| config.mode != RuntimeMode::PassThrough);
    let Some(config) = wanted else {
        return Ok(state::DIRECT);
    };
    let (base, bytes) = pool::reserve(config.pool_bytes).ok_or(OffReason::NoAddressSpace)?;
    let layout = layout(&config, bytes as u64);
    let private = tables::create_private(layout).map_err(|_| OffReason::NoAddressSpace)?;
    // SAFETY: no other thread reads the header yet.
    unsafe {
        (*private.header_mut()).pool_base = base as u64;
        (*private.header_mut()).pool_bytes = bytes as u64;
    }
    site::start().map_err(|_| OffReason::NoAddressSpace)?;
    thread::start(thread_exit::leave).ok_or(OffReason::NoThread)?;
    config::install(config);
    pool::open(base, bytes);
    if config.access_period > 0 && config.access_filter_lines > 0 {
        line_filter::start(config.access_filter_lines).ok_or(OffReason::NoAddressSpace)?;
    }
    if config.mode == RuntimeMode::Guided {
        free_map::open(base, bytes).map_err(|_| OffReason::NoAddressSpace)?;
    }
    if config.depth == 1 {
        HOT.stack_mask.store(0, Ordering::Relaxed);
    }
    if let Some(directory) = variable(env::SESSION) {
        session::start(directory);
    }
    let directory = variable(env::SESSION);
    let counts_pages = split::is_wanted(&config);
    capacity::start(config.tiers, directory, bytes >> CHUNK_SHIFT, counts_pages)?;
    start_emulation(&config, directory)?;
    if config.moves {
        staged::start();
    }
    // Last, because the instances take their first chunks: the trap must see them.
    register_arenas(&config);
    split::start(&config)?;
    Ok(if config.mode == RuntimeMode::Guided {
        state::GUIDED
    } else {
        state::PROFILE
    })
}

/// The layout of the session file: tables that a run does not use have no room in it.
fn layout(config: &Config, pool_bytes: u64) -> SessionLayout {
    let mut layout = SessionLayout::for_pool(pool_bytes);
    if config.access_period > 0 {
        layout = layout.counting_accesses();
    }
    if obeys_requests(config) {
        layout = layout.publishing_page_tiers();
    }
    if config.mode == RuntimeMode::Online {
        layout = layout.keeping_outcomes();
    }
    layout
}

/// Whether the observer's requests move data between emulated tiers.
fn obeys_requests(config: &Config) -> bool {
    let emulates = |tier: &TierRecord| tier.kind != TierRecordKind::Nodes as u32;
    config.mode == RuntimeMode::Online && config.tiers.iter().any(emulates)
}

/// Makes the arenas that exist from the start: the shared one and the spare ones of [`crate::reentrancy`], or one
/// for each tier and each leading record.
fn register_arenas(config: &Config) {
    if config.mode != RuntimeMode::Guided {
        let instances = instance::INSTANCES.len() as u32;
        for number in 0..instances {
            arena::register_instance(number, config.default_tier);
        }
        instance::start(instances, false);
        // The spare ones begin with a chunk each, of which most programs need nothing but the allocator's own page.
        for number in 1..instances {
            pool::for_each_run(number + 1, placement::move_to_slowest);
        }
        return;
    }
    let arenas = config.tiers.len() + config.leading.len();
    let instances = arenas.clamp(1, instance::INSTANCES.len()) as u32;
    let tier = |number| config.tier_of(config.target_of_arena(number));
    for number in 0..instances {
        arena::register_instance(number, tier(number));
    }
    instance::start(instances, true);
    for number in instances..arenas as u32 {
        // A tier without an arena is served by the default instance.
        if extent::create_arena(0, tier(number)).is_none() {
            break;
        }
    }
}

/// Starts the emulation, by time or by page trap, if anything is to be slowed or sampled.
fn start_emulation(config: &Config, directory: Option<&CStr>) -> Result<(), OffReason> {
    let settings = emulation::Settings {
        emulation: config.emulation,
        trapping: config.trapping,
        tiers: config.tiers,
        online: obeys_requests(config),
    };
    delay::start(pool::range(), &settings, session::tables(), directory)?;
    if config.emulation.period_ns == 0 && config.trapping.pages == 0 {
        return Ok(());
    }
    emulation::start(pool::range(), &settings, session::tables())?;
    placement::set_away();
    Ok(())
}

/// Runs when the library is loaded: decides, if no allocation did.
extern "C" fn loaded() {
    decide();
    c_library::start();
    c_signals::start();
    statics::start();
    python::start();
    if let Err(reason) = delay::begin() {
        session::off(reason);
    }
}

/// Runs when the program leaves through `exit`.
extern "C" fn unloaded() {
    thread_exit::finish();
    delay::finish();
    resident::measure_at_end();
    capacity::finish();
    if let Some(session) = session::current() {
        // A recorded reason stays published.
        let _ = session.header().state.compare_exchange(
            SessionState::Running as u32,
            SessionState::Exited as u32,
            Ordering::Release,
            Ordering::Relaxed,
        );
    }
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOADED: extern "C" fn() = unloaded;
