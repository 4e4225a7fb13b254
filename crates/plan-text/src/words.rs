//! Quotes words and escapes comments for the writer of plans, and undoes both for the reader.

/// A word in its spelling on a line, quoted if necessary.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:,+/-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        always_quoted(word)
    }
}

pub(super) fn always_quoted(word: &str) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.extend(c.escape_unicode()),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// Escapes a comment so that it stays on one line and is read back unchanged: controls, backslashes
/// and blanks at the ends, and in a label the `--` that would end it.
pub(super) fn escaped(text: &str, is_label: bool) -> String {
    let last = text.chars().count().saturating_sub(1);
    let mut before = ' ';
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        let at_end = i == 0 || i == last;
        match c {
            '\\' => out.push_str("\\\\"),
            c if c.is_control() || c.is_whitespace() && (at_end || c != ' ') => {
                out.extend(c.escape_unicode());
            }
            '-' if is_label && before == '-' => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// Undoes the escapes. An unknown escape stays as it is, because people edit comments.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (c, length) = escape_at(&rest[at..]).unwrap_or(('\\', 1));
        out.push(c);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

/// The character for an escape at the start of the text, and the length of the escape.
fn escape_at(text: &str) -> Option<(char, usize)> {
    let after = text.strip_prefix('\\')?;
    if let Some(code) = after.strip_prefix("u{") {
        let end = code.find('}')?;
        let c = char::from_u32(u32::from_str_radix(&code[..end], 16).ok()?)?;
        return Some((c, end + 4));
    }
    match after.chars().next()? {
        c @ ('"' | '\\') => Some((c, 2)),
        _ => None,
    }
}

/// The quoted word at the start of the text and the length of its spelling.
pub(super) fn quoted_word(text: &str) -> Option<(String, usize)> {
    let mut word = String::new();
    let mut at = 1;
    loop {
        let rest = text.get(at..)?;
        let c = rest.chars().next()?;
        if c == '"' {
            return Some((word, at + 1));
        }
        let (c, length) = escape_at(rest).unwrap_or((c, c.len_utf8()));
        word.push(c);
        at += length;
    }
}
