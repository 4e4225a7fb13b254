//! Names the frames of sites on a thread of its own while the program runs, so that little is left
//! to look up when it has ended: reading the debugging information of one large library takes
//! longer than anything else at the end of a short run.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use isotherm_model::site::{Site, SiteId};
use isotherm_observe::symbols::Symbols;

/// The thread, and what was sent to it.
pub(crate) struct Naming {
    unnamed: Sender<Vec<Site>>,
    named: Receiver<Vec<Site>>,
    sent: BTreeSet<SiteId>,
}

impl Naming {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (unnamed, incoming) = mpsc::channel::<Vec<Site>>();
        let (outgoing, named) = mpsc::channel();
        let name = move || {
            let mut symbols = Symbols::new();
            for mut sites in incoming {
                symbols.symbolise(&mut sites);
                // Nobody waits any more where the tool was interrupted.
                if outgoing.send(sites).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("naming".into()).spawn(name)?;
        Ok(Self {
            unnamed,
            named,
            sent: BTreeSet::new(),
        })
    }

    /// Looks up the frames of sites that were not seen before.
    pub(crate) fn look_up(&mut self, sites: &[Site]) {
        let new: Vec<Site> = sites
            .iter()
            .filter(|site| self.sent.insert(site.id))
            .cloned()
            .collect();
        if !new.is_empty() {
            // A thread that panicked leaves the frames without names.
            let _ = self.unnamed.send(new);
        }
    }

    /// The sites with their frames named.
    pub(crate) fn finish(self, sites: Vec<Site>) -> Vec<Site> {
        let unnamed = sites.clone();
        let _ = self.unnamed.send(sites);
        drop(self.unnamed);
        self.named
            .into_iter()
            .last()
            .filter(|named| named.len() == unnamed.len())
            .unwrap_or(unnamed)
    }
}

#[cfg(test)]
mod tests {
    use super::Naming;
    use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
    use object::{Object, ObjectSymbol};

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
            module: path.to_str().unwrap().to_owned(),
            offset: function.address() + 1,
            ..Frame::default()
        };
        (frame, "main".to_owned())
    }

    #[test]
    fn sites_are_named_whether_they_were_sent_before_the_end_or_not() {
        let (frame, name) = own_function();
        let site = |id| Site {
            frames: vec![frame.clone()],
            ..Site::new(SiteId(id), SiteKind::Heap)
        };
        let mut naming = Naming::start().unwrap();
        naming.look_up(&[site(7)]);
        naming.look_up(&[site(7)]);
        assert_eq!(naming.sent.len(), 1);
        let sites = naming.finish(vec![site(7), site(8)]);
        let names: Vec<_> = sites.iter().map(|s| s.frames[0].function.clone()).collect();
        assert_eq!(names, [Some(name.clone()), Some(name)]);
    }
}
