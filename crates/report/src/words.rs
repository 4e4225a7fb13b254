//! Numbers and names as people read them.

/// A share as a percentage: `83 %`, `4.2 %` below ten, `<0.1 %` where it would print as zero.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.05 {
        "<0.1 %".to_owned()
    } else if percent > 0.0 && percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A whole number with its thousands parted: `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 site`, `2 sites`.
#[must_use]
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number as u64))
}

/// Part of a whole between 0 and 1; 0 where there is no whole.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// At most `limit` characters, the last one `…` where something was cut. Control characters become
/// `?`, so that a name cannot steer a terminal.
#[must_use]
pub fn clip(text: &str, limit: usize) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let mut characters = text.chars().map(clean);
    let mut clipped: String = characters.by_ref().take(limit).collect();
    if characters.next().is_some() {
        clipped.pop();
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::{clip, counted, grouped, percent, share};

    #[test]
    fn shares_keep_two_figures_and_never_round_something_to_nothing() {
        let shares = [0.0, 0.000_1, 0.012, 0.0994, 0.0996, 0.834, 1.0];
        let texts = shares.map(percent);
        assert_eq!(
            texts,
            ["0 %", "<0.1 %", "1.2 %", "9.9 %", "10 %", "83 %", "100 %"]
        );
        assert!(share(1, 0).abs() < f64::EPSILON);
    }

    #[test]
    fn numbers_are_parted_by_thousands() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(counted(1, "site"), "1 site");
        assert_eq!(counted(1200, "site"), "1,200 sites");
    }

    #[test]
    fn names_are_cut_and_lose_what_steers_a_terminal() {
        assert_eq!(clip("abcdef", 6), "abcdef");
        assert_eq!(clip("abcdefg", 6), "abcde…");
        assert_eq!(clip("\x1b[31mred\n", 20), "?[31mred?");
        assert_eq!(clip("", 0), "");
    }
}
