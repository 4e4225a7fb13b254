//! What all pages share: a document that needs no network.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::words::clip;

const STYLE: &str = include_str!("../assets/report.css");

/// Characters of a name.
const NAME: usize = 200;

/// A name of bounded length.
pub(crate) fn name(text: &str) -> String {
    clip(text, NAME)
}

/// A table that scrolls where it is wider than the window.
pub(crate) fn scrolled(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// The document around a body.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    document.into_string()
}
