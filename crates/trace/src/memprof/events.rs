//! [`Events`] yields the maps, lists and scalars of a YAML file one after the other, each with its line, for the reader of MemProf's text.
//! The library `saphyr_parser` parses; values that are too long, references to other places and panics of the library become errors here.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead};
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
    state: Rc<State>,
}

impl<R: BufRead> Characters<R> {
    fn byte(&mut self) -> Option<u8> {
        let byte = match self.source.fill_buf() {
            Ok(bytes) => bytes.first().copied(),
            Err(error) => {
                self.state.failed.replace(Some(error));
                None
            }
        }?;
        self.source.consume(1);
        Some(byte)
    }
}

impl<R: BufRead> Iterator for Characters<R> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let unmarked = self.state.unmarked.get() + 1;
        self.state.unmarked.set(unmarked);
        if unmarked > BETWEEN_EVENTS {
            return None;
        }
        let first = self.byte()?;
        // The first byte of a character gives the number that follow; bytes that are not UTF-8
        // become replacement characters.
        let follow = match first {
            0xc2..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => {
                return Some(if first < 0x80 {
                    char::from(first)
                } else {
                    '\u{fffd}'
                });
            }
        };
        let mut bytes = [first, 0, 0, 0];
        for byte in &mut bytes[1..=follow] {
            *byte = self.byte()?;
        }
        let text = str::from_utf8(&bytes[..=follow]).ok();
        Some(
            text.and_then(|text| text.chars().next())
                .unwrap_or('\u{fffd}'),
        )
    }
}
