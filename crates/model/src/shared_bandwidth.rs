//! [`SharedBandwidth`] holds the limits of the tiers' bandwidths that the programs of one emulated machine share, with the machine's name
//! and the capacity of its fast tier, where it has these. [`BytesPerSecond`] and [`MachineName`] are read from `--tiers` and from plans.

use std::fmt;
use std::str::FromStr;

use crate::units::Bytes;

/// The bandwidths that all threads of all programs on an emulated machine may use together, of one tier or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBandwidth {
    fast: Option<BytesPerSecond>,
    slow: Option<BytesPerSecond>,
    machine: Option<MachineName>,
    capacity: Option<Bytes>,
}

impl SharedBandwidth {
    /// These limits of the fast and of the slow tier on the machine of this name; `None` without any limit, because its programs
    /// share nothing.
    #[must_use]
    pub const fn new(
        fast: Option<BytesPerSecond>,
        slow: Option<BytesPerSecond>,
        machine: Option<MachineName>,
    ) -> Option<Self> {
        if fast.is_none() && slow.is_none() {
            return None;
        }
        Some(Self {
            fast,
            slow,
            machine,
            capacity: None,
        })
    }

    /// The same limits on a machine whose fast tier has this capacity, of which the fast tier of a plan is a part. A machine without a name
    /// has no capacity.
    #[must_use]
    pub const fn with_capacity(self, capacity: Bytes) -> Self {
        let capacity = match self.machine {
            Some(_) => Some(capacity),
            None => None,
        };
        Self { capacity, ..self }
    }

    /// The capacity of the machine's fast tier; `None` where the plan's fast tier is all of it.
    #[must_use]
    pub const fn capacity(&self) -> Option<Bytes> {
        self.capacity
    }

    /// The limit of fast memory; `None` where it has none.
    #[must_use]
    pub const fn fast(&self) -> Option<BytesPerSecond> {
        self.fast
    }

    /// The limit of slow memory; `None` where it has none.
    #[must_use]
    pub const fn slow(&self) -> Option<BytesPerSecond> {
        self.slow
    }

    /// The machine's name: runs of one user that give the same name share the limits. Without a name the processes of one
    /// run share them.
    #[must_use]
    pub const fn machine(&self) -> Option<MachineName> {
        self.machine
    }
}

impl fmt::Display for SharedBandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fast = self.fast.map(|limit| format!("{limit} of fast memory"));
        let slow = self.slow.map(|limit| format!("{limit} of slow memory"));
        let limits: Vec<String> = fast.into_iter().chain(slow).collect();
        f.write_str(&limits.join(" and "))
    }
}

/// A bandwidth of 100 MiB/s to 1 PiB/s, written `5GiB/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BytesPerSecond(u64);

impl BytesPerSecond {
    /// The least: a thread reads some 10 MiB between two of its samples, and waits for them at once.
    pub const AT_LEAST: Bytes = Bytes(100 << 20);
    /// The most: far above any memory.
    pub const AT_MOST: Bytes = Bytes(1 << 50);

    /// A limit of `bytes` in a second; `None` outside the range.
    #[must_use]
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes < Self::AT_LEAST.0 || bytes > Self::AT_MOST.0 {
            return None;
        }
        Some(Self(bytes))
    }

    /// The bytes in a second.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The text that [`FromStr`] reads, without rounding.
    #[must_use]
    pub fn exact(self) -> String {
        format!("{}/s", Bytes(self.0).exact())
    }
}

impl fmt::Display for BytesPerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", Bytes(self.0))
    }
}

/// The error for a text that is not a bandwidth.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no bandwidth; use {least}/s to {most}/s, such as 5GiB/s",
    least = BytesPerSecond::AT_LEAST.exact(),
    most = BytesPerSecond::AT_MOST.exact()
)]
pub struct BandwidthError(String);

impl FromStr for BytesPerSecond {
    type Err = BandwidthError;

    fn from_str(text: &str) -> Result<Self, BandwidthError> {
        let bytes = text.strip_suffix("/s").map(str::parse::<Bytes>);
        bytes
            .and_then(Result::ok)
            .and_then(|bytes| Self::new(bytes.0))
            .ok_or_else(|| BandwidthError(text.to_owned()))
    }
}

/// The name of an emulated machine: 1 to 24 of the characters `a-z`, `0-9`, `_` and `-`, the first one a letter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MachineName {
    bytes: [u8; Self::LONGEST],
    length: u8,
}

impl MachineName {
    const LONGEST: usize = 24;

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // The constructor accepts ASCII only.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Debug for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not a name of a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no name of an emulated machine; use up to {longest} of a-z, 0-9, _ and -, the first one a letter",
    longest = MachineName::LONGEST
)]
pub struct MachineNameError(String);

impl FromStr for MachineName {
    type Err = MachineNameError;

    fn from_str(text: &str) -> Result<Self, MachineNameError> {
        let is_part =
            |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(byte);
        let is_name = text.len() <= Self::LONGEST
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.as_bytes().iter().all(is_part);
        if !is_name {
            return Err(MachineNameError(text.to_owned()));
        }
        let mut bytes = [0; Self::LONGEST];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self {
            bytes,
            length: text.len() as u8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, BytesPerSecond, MachineName, SharedBandwidth};

    #[test]
    fn a_bandwidth_reads_what_it_writes() {
        for text in ["100MiB/s", "5GiB/s", "1PiB/s"] {
            let rate: BytesPerSecond = text.parse().expect("a bandwidth");
            assert_eq!(rate.exact(), text);
        }
        for text in ["5GiB", "99MiB/s", "2PiB/s", "/s", "fast/s", "5GiB/s/s", ""] {
            assert!(text.parse::<BytesPerSecond>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_machine_shares_the_bandwidth_of_one_tier_or_of_both() {
        let rate = |text: &str| text.parse().ok();
        let words = |fast, slow| SharedBandwidth::new(fast, slow, None).map(|it| it.to_string());
        assert_eq!(words(None, None), None);
        let slow = "5 GiB/s of slow memory".to_owned();
        assert_eq!(words(None, rate("5GiB/s")), Some(slow));
        let both = "10 GiB/s of fast memory and 5 GiB/s of slow memory".to_owned();
        assert_eq!(words(rate("10GiB/s"), rate("5GiB/s")), Some(both));
    }

    #[test]
    fn a_machine_with_a_name_has_a_capacity() {
        let with = |machine: Option<&str>| {
            let machine = machine.map(|name| name.parse().expect("a name"));
            let shared = SharedBandwidth::new("5GiB/s".parse().ok(), None, machine);
            shared.expect("a limit").with_capacity(Bytes(7)).capacity()
        };
        assert_eq!((with(Some("lab")), with(None)), (Some(Bytes(7)), None));
    }

    #[test]
    fn a_machine_has_a_plain_name() {
        for text in ["lab", "a", "box-2_b", "abcdefghijklmnopqrstuvwx"] {
            let name: MachineName = text.parse().expect("a name");
            assert_eq!(name.to_string(), text);
        }
        for text in [
            "",
            "2",
            "-a",
            "Lab",
            "a/b",
            "..",
            "a b",
            "abcdefghijklmnopqrstuvwxy",
            "l\u{e4}b",
        ] {
            assert!(text.parse::<MachineName>().is_err(), "{text}");
        }
    }
}
