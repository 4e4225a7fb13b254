//! Parses numbers of traces: times and addresses with a message for each kind of error, and plain decimal and hexadecimal words.

use crate::error::{Fault, shown};

/// Decimal digits of a fraction that count; more would be below the resolution of any clock.
const DIGITS: u32 = 18;

/// A time of `unit` nanoseconds with an optional decimal fraction, `12`, `0.25`, in nanoseconds,
/// rounded down.
pub(crate) fn time(text: &str, unit: u64) -> Result<u64, Fault> {
    let wrong = |what: &str| Fault::new(format!("the time {} {what}", shown(text)), TIME);
    if text.starts_with('-') {
        return Err(wrong("is negative"));
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(wrong("is no decimal number"));
    }
    let whole: u64 = whole.parse().map_err(|_| wrong("is too large"))?;
    let kept = &fraction[..fraction.len().min(DIGITS as usize)];
    let numerator: u128 = kept.parse().unwrap_or(0);
    // At most 10^18 times 10^9: far below 2^128. The quotient is below `unit`.
    let part = numerator * u128::from(unit) / 10_u128.pow(kept.len() as u32);
    whole
        .checked_mul(unit)
        .and_then(|nanoseconds| nanoseconds.checked_add(part as u64))
        .ok_or_else(|| wrong("is too large"))
}

const TIME: &str = "a decimal number of zero or more, below 584 years";

/// An address: hexadecimal after `0x`, else decimal.
pub(crate) fn address(text: &str) -> Result<u64, Fault> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = digits.map_or_else(|| decimal(text), hexadecimal);
    number.ok_or_else(|| wrong_address(text))
}

/// An address in hexadecimal digits, with or without `0x`.
pub(crate) fn hexadecimal_address(text: &str) -> Result<u64, Fault> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    hexadecimal(digits.unwrap_or(text)).ok_or_else(|| wrong_address(text))
}

fn wrong_address(text: &str) -> Fault {
    let what = match text.starts_with('-') {
        true => "is negative",
        false => "is no number of 64 bits",
    };
    Fault::new(
        format!("the address {} {what}", shown(text)),
        "an address: decimal, or hexadecimal as in 0x7ffff7fe4b70 (bare hexadecimal in a column \
         called address_hex)",
    )
}

/// A number in hexadecimal digits only; no sign, no prefix.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// A number in decimal digits only; no sign.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// The seconds of a kernel trace, `82820.952659:`, in nanoseconds; `None` for any other word.
pub(crate) fn stamp(word: &str) -> Option<Result<u64, Fault>> {
    let text = word.strip_suffix(':')?;
    let (whole, fraction) = text.split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(fraction)).then(|| time(text, 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::{address, hexadecimal_address, stamp, time};

    #[test]
    fn times_keep_their_fraction_and_never_overflow() {
        assert_eq!(time("12", 1_000), Ok(12_000));
        assert_eq!(time("0.25", 1_000_000_000), Ok(250_000_000));
        assert_eq!(time("1.", 1), Ok(1));
        assert_eq!(time("0.9999999999999999999999", 1), Ok(0));
        assert_eq!(time("18446744073.709551615", 1_000_000_000), Ok(u64::MAX));
        for (text, what) in [
            ("-1", "negative"),
            ("", "no decimal"),
            ("1e3", "no decimal"),
            ("99999999999999999999", "too large"),
            ("18446744073.709551616", "too large"),
        ] {
            let fault = time(text, 1_000_000_000).unwrap_err();
            assert!(fault.found.contains(what), "{text}: {fault:?}");
        }
    }

    #[test]
    fn addresses_are_decimal_or_hexadecimal_and_64_bits_wide() {
        assert_eq!(address("0xffffffffffffffff"), Ok(u64::MAX));
        assert_eq!(address("4096"), Ok(4096));
        assert_eq!(hexadecimal_address("7fff"), Ok(0x7fff));
        assert_eq!(hexadecimal_address("0x7fff"), Ok(0x7fff));
        for text in ["7fff", "-1", "+1", "0x", "0x10000000000000000", ""] {
            assert!(address(text).is_err(), "{text} was taken");
        }
    }

    #[test]
    fn a_stamp_is_told_from_other_words() {
        assert_eq!(stamp("3629.177690:"), Some(Ok(3_629_177_690_000)));
        for word in ["3629:", "0:1", "a.b:", "1.5", "1.:", "page-faults:u:"] {
            assert_eq!(stamp(word), None, "{word}");
        }
    }
}
