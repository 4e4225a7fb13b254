//! [`Registers`] holds the recorded registers of a program at a sample, from which the address of an access is computed.

/// Registers of the program at a sample, by their number in `asm/perf_regs.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    values: [u64; REGISTERS],
    mask: u64,
}

/// Register numbers go up to this: aarch64 has 33.
const REGISTERS: usize = 33;

impl Registers {
    /// No register known.
    pub const NONE: Self = Self {
        values: [0; REGISTERS],
        mask: 0,
    };

    /// The register with this number, if it was recorded.
    #[must_use]
    pub fn get(&self, number: u8) -> Option<u64> {
        (self.mask >> number.min(63) & 1 != 0)
            .then(|| self.values.get(usize::from(number)).copied())
            .flatten()
    }

    /// Stores a register; a number beyond the last is ignored.
    pub fn set(&mut self, number: u8, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value;
            self.mask |= 1 << number;
        }
    }
}
