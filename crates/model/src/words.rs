//! Spells percentages, numbers and counted nouns for people, the same way in every output; [`share`] computes a part of a whole.

/// A share as a percentage: `83 %`, `4.2 %` between -10 and 10, `<0.1 %` and `>-0.1 %` where it would print as zero.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        size if size < 0.05 && percent < 0.0 => ">-0.1 %".to_owned(),
        size if size < 0.05 => "<0.1 %".to_owned(),
        size if size < 9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A whole number with separators between thousands: `1,234,567`.
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

/// A number and its noun, in the plural unless the number is one: `1 site`, `2 sites`, `1 access`,
/// `1,200 accesses`.
#[must_use]
pub fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {}", grouped(number), plural(noun)),
    }
}

/// The plural of an English noun, by its ending.
pub(crate) fn plural(noun: &str) -> String {
    // Not every "ch" takes "es": "epochs", but "touches".
    let hisses = ["s", "x", "uch", "sh"];
    if hisses.iter().any(|ending| noun.ends_with(ending)) {
        return format!("{noun}es");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

/// A part as a fraction of a whole, 0 to 1; 0 where the whole is 0.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, grouped, percent, share};

    #[test]
    fn shares_keep_two_figures_and_never_round_something_to_nothing() {
        let shares = [0.0, 0.000_1, 0.012, 0.0994, 0.0996, 0.834, 1.0];
        let texts = shares.map(percent);
        assert_eq!(
            texts,
            ["0 %", "<0.1 %", "1.2 %", "9.9 %", "10 %", "83 %", "100 %"]
        );
        let lost = [-0.0, -0.000_1, -0.012, -0.0996, -0.834].map(percent);
        assert_eq!(lost, ["0 %", ">-0.1 %", "-1.2 %", "-10 %", "-83 %"]);
        assert!(share(1, 0).abs() < f64::EPSILON);
    }

    #[test]
    fn numbers_are_parted_by_thousands() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn only_one_thing_is_singular() {
        assert_eq!(counted(0_u64, "site"), "0 sites");
        assert_eq!(counted(1_u64, "epoch"), "1 epoch");
        assert_eq!(counted(1_200_usize, "site"), "1,200 sites");
        assert_eq!(counted(2_u64, "epoch"), "2 epochs");
        let plurals = ["access", "miss", "page touch", "process", "policy", "day"];
        assert_eq!(
            plurals.map(|noun| counted(2_u32, noun)),
            [
                "2 accesses",
                "2 misses",
                "2 page touches",
                "2 processes",
                "2 policies",
                "2 days"
            ]
        );
    }
}
