//! `Naming` looks up function and line of the frames of sites, and of the code that accesses their data, on a separate thread while the
//! program runs, because reading the debugging information of a large library is slow; `finish` looks up the rest at the program's end.
//!
//! Only the sites that reports and plans show are named: those whose data was accessed or resident, and those that the compiler
//! named. The thousands of others that a large program has share one arena, and are shown by module and offset.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use isotherm_model::profile::Segment;
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::Bytes;
use isotherm_symbols::name_cache::NameCache;
use isotherm_symbols::resolver::Symbols;
use isotherm_sys::file_root::FileRoot;

/// Time that naming may take at the end before the last epoch is written without names.
const MOMENT: Duration = Duration::from_millis(100);

/// What is named at one time, to the thread and back.
#[derive(Debug, Default)]
pub(crate) struct NamedParts {
    /// Sites, whose frames are named.
    pub(crate) sites: Vec<Site>,
    /// Instructions that accessed data.
    pub(crate) code: Vec<Arc<Frame>>,
}

/// The thread, and the frames sent to it.
pub(crate) struct Naming {
    unnamed: Sender<NamedParts>,
    named: Receiver<NamedParts>,
    /// Instructions that were sent.
    code: HashSet<(Arc<str>, u64)>,
    /// Sites that are not shown yet.
    waiting: BTreeMap<SiteId, Site>,
    shown: BTreeSet<SiteId>,
}

impl Naming {
    /// Starts the thread; modules are read below this root.
    ///
    /// # Errors
    /// No thread could be created.
    pub(crate) fn start(root: FileRoot) -> io::Result<Self> {
        let (unnamed, incoming) = mpsc::channel::<NamedParts>();
        let (outgoing, named) = mpsc::channel();
        let name = move || {
            let mut symbols = Symbols::with_cache(NameCache::of_user()).below(root);
            for mut parts in incoming {
                symbols.symbolise(&mut parts.sites);
                symbols.name_code(&mut parts.code);
                // Without a receiver the tool was interrupted.
                if outgoing.send(parts).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("naming".into()).spawn(name)?;
        Ok(Self {
            unnamed,
            named,
            code: HashSet::new(),
            waiting: BTreeMap::new(),
            shown: BTreeSet::new(),
        })
    }

    /// Looks up the frames of sites that are likely to be shown, so that they are known when they are.
    pub(crate) fn look_up_early(&self, sites: Vec<Site>) {
        if !sites.is_empty() {
            // A thread that panicked names nothing, as in [`Self::look_up`].
            let _ = self.unnamed.send(NamedParts {
                sites,
                code: Vec::new(),
            });
        }
    }

    /// Looks up the frames of sites that are shown since this segment, and the code that it is the first to have.
    pub(crate) fn look_up(&mut self, segment: &Segment) {
        let accessed = segment.heat.iter().map(|heat| heat.site);
        let own = segment.sites.iter().filter(|site| is_shown(site));
        let now: BTreeSet<SiteId> = own.map(|site| site.id).chain(accessed).collect();
        for site in &segment.sites {
            if !self.shown.contains(&site.id) {
                self.waiting.insert(site.id, site.clone());
            }
        }
        let new: Vec<Site> = now
            .iter()
            .filter_map(|site| self.waiting.remove(site))
            .collect();
        self.shown.extend(now);
        let code = segment.code.iter().filter(|row| {
            let place = (Arc::clone(&row.code.module), row.code.offset);
            self.code.insert(place)
        });
        let code: Vec<Arc<Frame>> = code.map(|row| Arc::clone(&row.code)).collect();
        if !new.is_empty() || !code.is_empty() {
            // A thread that panicked leaves the frames without names.
            let _ = self.unnamed.send(NamedParts { sites: new, code });
        }
    }

    /// The sites with the frames of those that are shown named, and the code with names. Calls `late` once if that takes over a [`MOMENT`].
    pub(crate) fn finish(self, all: NamedParts, late: impl FnOnce()) -> NamedParts {
        let NamedParts { sites, code } = all;
        let is_named = |site: &&Site| is_shown(site) || self.shown.contains(&site.id);
        let shown: Vec<Site> = sites.iter().filter(is_named).cloned().collect();
        let _ = self.unnamed.send(NamedParts { sites: shown, code });
        drop(self.unnamed);
        let named = last_within(&self.named, MOMENT).unwrap_or_else(|so_far| {
            late();
            self.named.into_iter().last().unwrap_or(so_far)
        });
        let NamedParts { sites: named, code } = named;
        let mut named: BTreeMap<SiteId, Site> =
            named.into_iter().map(|site| (site.id, site)).collect();
        let named = sites
            .into_iter()
            .map(|site| named.remove(&site.id).unwrap_or(site));
        NamedParts {
            sites: named.collect(),
            code,
        }
    }
}

/// The last message of a channel, if its senders are gone within this time; else, as the error, the last one so far. Earlier
/// messages are dropped.
fn last_within(messages: &Receiver<NamedParts>, time: Duration) -> Result<NamedParts, NamedParts> {
    let (begun, mut last) = (Instant::now(), NamedParts::default());
    loop {
        match messages.recv_timeout(time.saturating_sub(begun.elapsed())) {
            Ok(parts) => last = parts,
            Err(RecvTimeoutError::Disconnected) => return Ok(last),
            Err(RecvTimeoutError::Timeout) => return Err(last),
        }
    }
}

fn is_shown(site: &Site) -> bool {
    matches!(
        site.kind,
        SiteKind::Described | SiteKind::Named | SiteKind::Java
    ) || site.peak_rss > Bytes::ZERO
        || site.peak_requested > Bytes::ZERO
}

#[cfg(test)]
mod tests {
    use super::{FileRoot, NamedParts, Naming, last_within};
    use isotherm_model::batch::{Epoch, Process};
    use isotherm_model::profile::{Heat, Segment};
    use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes};
    use object::{Object, ObjectSymbol};
    use std::sync::mpsc;
    use std::time::Duration;

    /// A function of this very program, as a frame would have it: past its first instruction.
    fn own_function() -> (Frame, String) {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let function = file
            .symbols()
            .find(|symbol| symbol.name().is_ok_and(|name| name == "main"))
            .unwrap();
        let frame = Frame {
            module: path.to_str().unwrap().into(),
            offset: function.address() + 1,
            ..Frame::default()
        };
        (frame, "main".to_owned())
    }

    #[test]
    fn what_is_shown_is_named_whether_it_was_sent_before_the_end_or_not() {
        let (frame, name) = own_function();
        let site = |id, rss| Site {
            frames: vec![frame.clone()].into(),
            peak_rss: Bytes(rss),
            ..Site::new(SiteId(id), SiteKind::Heap)
        };
        let segment = |sites, heat: &[u64]| Segment {
            sites,
            heat: heat
                .iter()
                .map(|id| Heat {
                    epoch: Epoch(0),
                    process: Process { pid: 1, image: 0 },
                    site: SiteId(*id),
                    address: 0,
                    object: None,
                    accesses: Accesses(1),
                    streamed: Accesses::ZERO,
                    served: Accesses::ZERO,
                })
                .collect(),
            ..Segment::default()
        };
        let mut naming = Naming::start(FileRoot::default()).unwrap();
        naming.look_up(&segment(vec![site(7, 1), site(5, 0), site(6, 0)], &[]));
        naming.look_up(&segment(vec![site(7, 2)], &[6]));
        assert_eq!(naming.waiting.keys().collect::<Vec<_>>(), [&SiteId(5)]);
        let all = NamedParts {
            sites: vec![site(5, 0), site(6, 0), site(7, 2), site(8, 3)],
            code: vec![frame.clone().into()],
        };
        let parts = naming.finish(all, || ());
        let names = parts.sites.iter().map(|s| s.frames[0].function.clone());
        let names: Vec<_> = names.collect();
        let named = Some(name);
        assert_eq!(parts.code[0].function, named);
        assert_eq!(names, [None, named.clone(), named.clone(), named]);
    }

    #[test]
    fn a_slow_thread_is_not_waited_for_and_what_it_named_is_kept() {
        let (sender, receiver) = mpsc::channel();
        let site = |id| NamedParts {
            sites: vec![Site::new(SiteId(id), SiteKind::Heap)],
            code: Vec::new(),
        };
        sender.send(site(6)).unwrap();
        let so_far = last_within(&receiver, Duration::from_millis(5)).unwrap_err();
        assert_eq!(so_far.sites[0].id, SiteId(6));
        sender.send(site(7)).unwrap();
        drop(sender);
        let last = last_within(&receiver, Duration::from_secs(60)).unwrap();
        assert_eq!(last.sites[0].id, SiteId(7));
    }
}
