//! `symbols_at` looks up the function, source position and inlined calls at addresses of a module, for the resolver and [`crate::calls`];
//! `calls_before` turns return addresses into addresses within the calls before them, for the resolver.

use blazesym::symbolize::source::Source;
use blazesym::symbolize::{Input, Sym, Symbolized, Symbolizer};

/// One entry for each address; `None` if it is unknown.
pub(crate) fn symbols_at<'a>(
    symbolizer: &'a Symbolizer,
    source: &Source<'_>,
    addresses: &[u64],
) -> Vec<Option<Sym<'a>>> {
    let found = symbolizer.symbolize(source, Input::VirtOffset(addresses));
    let known = found.unwrap_or_default().into_iter();
    let symbol = |found| match found {
        Symbolized::Sym(symbol) => Some(symbol),
        Symbolized::Unknown(_) => None,
    };
    let mut symbols: Vec<Option<Sym<'a>>> = known.map(symbol).collect();
    symbols.resize_with(addresses.len(), || None);
    symbols
}

/// The addresses of the calls that return to these: a return address may belong to the next line, or
/// even to the next function.
pub(crate) fn calls_before(returns_to: &[u64]) -> Vec<u64> {
    returns_to
        .iter()
        .map(|address| address.saturating_sub(1))
        .collect()
}
