//! Quotes the words of a command so that a shell reads them as they are.

/// The word, in single quotes where a shell would take it apart.
#[must_use]
pub fn word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The words, parted by blanks.
#[must_use]
pub fn line(words: &[impl AsRef<str>]) -> String {
    let words: Vec<_> = words.iter().map(|text| word(text.as_ref())).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_copied_command_has_the_words_it_was_made_of() {
        let words = ["./app", "--size=4GiB", "a b", "", "it's", "$(reboot)"];
        assert_eq!(
            line(&words),
            r"./app --size=4GiB 'a b' '' 'it'\''s' '$(reboot)'"
        );
    }
}
