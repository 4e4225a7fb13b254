//! Invented inputs: random ones, and committed ones with a few changes.

/// Longest input made; a reader's limits are tested with short inputs that name large numbers.
const LONGEST: usize = 4096;

/// Numbers at which arithmetic goes wrong.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// A source of random numbers: SplitMix64, the same everywhere.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below the limit; 0 where the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        match limit {
            0 => 0,
            limit => (self.number() % limit as u64) as usize,
        }
    }

    /// Bytes without any structure.
    pub fn bytes(&mut self) -> Vec<u8> {
        let length = self.below(256);
        (0..length).map(|_| self.number() as u8).collect()
    }
}

/// One of the inputs with one to eight changes; random bytes where there are no inputs, and now and
/// then where there are.
#[must_use]
pub fn mutated(random: &mut Random, inputs: &[Vec<u8>]) -> Vec<u8> {
    if inputs.is_empty() || random.below(16) == 0 {
        return random.bytes();
    }
    let mut bytes = inputs[random.below(inputs.len())].clone();
    for _ in 0..=random.below(8) {
        let other = &inputs[random.below(inputs.len())];
        change(random, &mut bytes, other);
    }
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(bytes.len());
    let end = at + random.below((bytes.len() - at).min(64) + 1);
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => {
            let part = bytes[at..end].to_vec();
            insert(bytes, at, &part);
        }
        3 => {
            let from = random.below(other.len());
            let to = from + random.below((other.len() - from).min(64) + 1);
            insert(bytes, at, &other[from..to]);
        }
        4 => {
            let edge = EDGES[random.below(EDGES.len())].to_le_bytes();
            let width = [1, 2, 4, 8][random.below(4)];
            overwrite(bytes, at - at % width, &edge[..width]);
        }
        5 => {
            let edge = EDGES[random.below(EDGES.len())].to_string();
            insert(bytes, at, edge.as_bytes());
        }
        6 => overwrite(bytes, at, &[random.number() as u8]),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    if bytes.len() + part.len() <= LONGEST {
        bytes.splice(at..at, part.iter().copied());
    }
}

fn overwrite(bytes: &mut [u8], at: usize, part: &[u8]) {
    for (byte, new) in bytes[at..].iter_mut().zip(part) {
        *byte = *new;
    }
}
