//! Parses flags with known values, which completions offer: [`one_of`] accepts only these words, [`KnownValues`] accepts what a function of
//! the flag accepts, which may be more (`static-ratio=1:3`).

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command, Error};

/// A flag whose values are these words, each with its meaning.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let meanings: Vec<(&str, T)> = words.into_iter().collect();
    let words = PossibleValuesParser::new(meanings.iter().map(|(word, _)| *word));
    words.try_map(move |given| {
        let meaning = meanings.iter().find(|(word, _)| *word == given);
        meaning.map(|(_, value)| value.clone()).ok_or("is unknown")
    })
}

/// The words of a flag, and the function that parses its values.
#[derive(Clone, Copy)]
pub(crate) struct KnownValues<T> {
    words: fn() -> Vec<&'static str>,
    read: fn(&str) -> Result<T, String>,
}

impl<T> KnownValues<T> {
    /// Offers these words and accepts the values that `read` accepts.
    pub(crate) const fn new(
        words: fn() -> Vec<&'static str>,
        read: fn(&str) -> Result<T, String>,
    ) -> Self {
        Self { words, read }
    }
}

impl KnownValues<String> {
    /// Offers these words and accepts any: the user of the value reports errors in it.
    pub(crate) const fn any(words: fn() -> Vec<&'static str>) -> Self {
        Self::new(words, |word| Ok(word.to_owned()))
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for KnownValues<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, flag: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        self.read.parse_ref(command, flag, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.words)().into_iter().map(PossibleValue::new)))
    }
}
