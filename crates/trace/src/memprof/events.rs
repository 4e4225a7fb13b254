//! [`Events`] yields the maps, lists and scalars of a YAML file one after the other, each with its line, for the reader of MemProf's text.
//! The library `saphyr_parser` parses; values that are too long, references to other places and panics of the library become errors here.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use saphyr_parser::{BufferedInput, Event as YamlEvent, Parser};

use crate::error::{Error, Fault, Place};

const YAML: &str = "YAML as `llvm-profdata show --memory` prints it";
/// Most characters between two events: even a mangled name is far shorter. Without a limit one
/// value could be as long as the file.
const BETWEEN_EVENTS: usize = 1 << 20;

/// The events that the MemProf reader uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    MapStart,
    ListStart,
    /// End of a map or list.
    End,
    /// A key or a value.
    Scalar(String),
}

/// The events of a file.
pub(super) struct Events<R: BufRead> {
    parser: Parser<'static, BufferedInput<Characters<R>>>,
    state: Rc<State>,
    file: String,
}

/// The errors that the parser cannot return.
#[derive(Debug, Default)]
struct State {
    failed: RefCell<Option<io::Error>>,
    unmarked: Cell<usize>,
}

impl<R: BufRead + 'static> Events<R> {
    pub(super) fn new(source: R, file: &str) -> Self {
        let state = Rc::new(State::default());
        let characters = Characters {
            source,
            line: Vec::new().into_iter(),
            state: Rc::clone(&state),
        };
        Self {
            parser: Parser::new_from_iter(characters),
            state,
            file: file.to_owned(),
        }
    }

    /// The next event and its line; `None` at the end.
    pub(super) fn next_event(&mut self) -> Result<Option<(Event, u64)>, Error> {
        loop {
            let next = catch_unwind(AssertUnwindSafe(|| self.parser.next_event()));
            if let Some(source) = self.state.failed.take() {
                return Err(Error::read(&self.file, source));
            }
            let wrong = |found: String, line: u64| {
                Fault::new(found, YAML).at(&self.file, Place::Line(line.max(1)))
            };
            let (event, span) = match next {
                Ok(Some(Ok(next))) => next,
                Ok(Some(Err(error))) => {
                    let line = error.marker().line() as u64;
                    return Err(wrong(format!("it is no YAML ({})", error.info()), line));
                }
                Ok(None) => return Ok(None),
                Err(_) => return Err(wrong("it is no YAML".to_owned(), 1)),
            };
            let line = span.start.line() as u64;
            if self.state.unmarked.replace(0) > BETWEEN_EVENTS {
                let found = format!("a value is longer than {BETWEEN_EVENTS} characters");
                return Err(wrong(found, line));
            }
            let event = match event {
                YamlEvent::MappingStart(..) => Event::MapStart,
                YamlEvent::SequenceStart(..) => Event::ListStart,
                YamlEvent::MappingEnd | YamlEvent::SequenceEnd => Event::End,
                YamlEvent::Scalar(text, ..) => Event::Scalar(text.into_owned()),
                YamlEvent::Alias(_) => {
                    return Err(wrong("a value refers to another place".to_owned(), line));
                }
                YamlEvent::StreamEnd => return Ok(None),
                _ => continue,
            };
            return Ok(Some((event, line)));
        }
    }
}

/// The characters of a file; bytes that are not UTF-8 become replacement characters. It ends early if the file cannot be read, or if
/// the parser has read more than the longest allowed value.
struct Characters<R> {
    source: R,
    /// The characters of the line that were not read yet.
    line: std::vec::IntoIter<char>,
    state: Rc<State>,
}

impl<R: BufRead> Iterator for Characters<R> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let unmarked = self.state.unmarked.get() + 1;
        self.state.unmarked.set(unmarked);
        if unmarked > BETWEEN_EVENTS {
            return None;
        }
        if self.line.len() == 0 {
            let mut bytes = Vec::new();
            let mut line = self.source.by_ref().take(BETWEEN_EVENTS as u64);
            if let Err(error) = line.read_until(b'\n', &mut bytes) {
                self.state.failed.replace(Some(error));
                return None;
            }
            let text = String::from_utf8_lossy(&bytes);
            self.line = text.chars().collect::<Vec<_>>().into_iter();
        }
        self.line.next()
    }
}
