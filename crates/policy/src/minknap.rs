//! [`pack_values`] solves the 0/1 knapsack exactly by an expanding core (dynamic programming around the first item that does not fit), for
//! the knapsack policy and the cold set (`energy::cold_set`: the sites of most bytes within a share of the accesses); after Pisinger's
//! minknap ("A minimal algorithm for the 0-1 knapsack problem", Operations Research 45, 1997). If the search reaches its limits
//! ([`Effort`]), it returns the best packing found and how much better another could be.
//!
//! Sort by hotness and take items while they fit. The first that does not fit is the *break item*,
//! the taken items the *break solution*. An optimal solution nearly always differs from it only
//! around the break item, so dynamic programming starts there and works outwards:
//!
//! ```text
//!   hotter  . . . . [ s  ... core ... t ] . . . .  colder
//!           in the solution   |   left out of it
//!                         break item
//! ```
//!
//! A *state* is one decision for every item of the core, with its total value and weight. For each
//! item next to the core every state is kept and copied with the item toggled (dropped on the left,
//! added on the right). Dominated states are removed (another is no heavier and has at least the
//! value), and so are states whose bound, all remaining room filled at the density next to the
//! core, cannot exceed the best known solution. When no state is left the best is proved. Items
//! that by the same bound cannot be part of a better solution are skipped.
//!
//! Memory depends on the number of live states, never on the capacity. The decisions of a state are
//! a chain of links in one array, from which dead chains are removed when it is full.

/// An item to pack: value above 0, weight from 1 to the capacity. Callers sort by hotness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packable<V> {
    pub(crate) value: V,
    pub(crate) weight: i64,
}

/// Limits on work and memory, so that a decision always ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effort {
    /// States visited in total.
    pub(crate) steps: u64,
    /// States alive at one time; two lists of at most 48 bytes a state.
    pub(crate) states: usize,
    /// Links kept, 8 bytes each and 4 more while cleaning.
    pub(crate) links: usize,
}

impl Effort {
    /// Some seconds and 200 MB in the worst case; profiles of real programs need a small part of
    /// either.
    pub(crate) const DEFAULT: Self = Self {
        steps: 600_000_000,
        states: 1_500_000,
        links: 8_000_000,
    };
}

/// A packing and its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packing<V> {
    /// For each item: true if it is packed.
    pub(crate) taken: Vec<bool>,
    /// Value that no packing can exceed; the packing's own value if it is proved best.
    pub(crate) at_most: V,
    /// True where no better packing exists.
    pub(crate) proved: bool,
}

/// Arithmetic on values: 64 bits if all values together fit, otherwise 128.
pub(crate) trait Amount:
    Copy + Ord + std::ops::Add<Output = Self> + std::ops::Sub<Output = Self> + std::fmt::Debug
{
    const ZERO: Self;
    const ONE: Self;

    /// floor(room * value / weight) < gap, without rounding: room * value < gap * weight, weight
    /// above zero. `room` may be negative (bytes to give back).
    fn falls_short(self, room: i64, weight: i64, gap: Self) -> bool;

    /// floor(room * value / weight), or the largest value where that overflows.
    fn share(self, room: i64, weight: i64) -> Self;
}

impl Amount for i64 {
    const ZERO: Self = 0;
    const ONE: Self = 1;

    fn falls_short(self, room: i64, weight: i64, gap: Self) -> bool {
        i128::from(room) * i128::from(self) < i128::from(gap) * i128::from(weight)
    }

    fn share(self, room: i64, weight: i64) -> Self {
        let share = (i128::from(room) * i128::from(self)).div_euclid(i128::from(weight));
        Self::try_from(share).unwrap_or(Self::MAX)
    }
}

impl Amount for i128 {
    const ZERO: Self = 0;
    const ONE: Self = 1;

    /// A value is below 2^64 and |room| below 2^55, so the left side is exact. Where the right side
    /// saturates its true value is above every left side, so the comparison still holds.
    fn falls_short(self, room: i64, weight: i64, gap: Self) -> bool {
        Self::from(room) * self < gap.saturating_mul(Self::from(weight))
    }

    fn share(self, room: i64, weight: i64) -> Self {
        (Self::from(room) * self).div_euclid(Self::from(weight))
    }
}

/// No link: the break solution itself.
const ROOT: u32 = u32::MAX;

/// One decision for the core. Values and weights are those of the whole solution.
#[derive(Clone, Copy)]
struct State<V> {
    value: V,
    weight: i64,
    link: u32,
}

/// One toggled item on the way to a state.
#[derive(Clone, Copy)]
struct Link {
    before: u32,
    item: u32,
}

/// The search. States are in order of weight, with strictly rising values.
struct Search<'a, V> {
    items: &'a [Packable<V>],
    capacity: i64,
    /// First item that is not in the break solution.
    break_at: usize,
    /// Value and weight of the break solution.
    start: (V, i64),
    /// Items before this are undecided.
    left: usize,
    /// Items from here on are undecided.
    right: usize,
    /// Weight of the undecided part of the break solution, which a state can still return.
    returnable: i64,
    states: Vec<State<V>>,
    spare: Vec<State<V>>,
    links: Vec<Link>,
    /// Value of the best known solution.
    best: V,
    /// The toggled items of the best solution.
    best_toggles: Vec<u32>,
    steps: u64,
    effort: Effort,
}

/// Packs items of these values and weights, sorted by hotness descending, into the capacity: true
/// for each packed item, and the most value that a better packing could have in addition where the
/// search ended before the packing was proved best.
pub(crate) fn pack_values(
    values: &[u64],
    weights: &[i64],
    capacity: i64,
    effort: Effort,
) -> (Vec<bool>, Option<u128>) {
    let total: u128 = values.iter().map(|&value| u128::from(value)).sum();
    let items = values.iter().copied().zip(weights.iter().copied());
    if total < 1 << 62 {
        let items = items.map(|(value, weight)| Packable {
            value: value as i64,
            weight,
        });
        pack_proved(&items.collect::<Vec<_>>(), capacity, effort)
    } else {
        let items = items.map(|(value, weight)| Packable {
            value: i128::from(value),
            weight,
        });
        pack_proved(&items.collect::<Vec<_>>(), capacity, effort)
    }
}

fn pack_proved<V: Amount + Into<i128>>(
    items: &[Packable<V>],
    capacity: i64,
    effort: Effort,
) -> (Vec<bool>, Option<u128>) {
    let packing = pack(items, capacity, effort);
    let taken = items
        .iter()
        .zip(&packing.taken)
        .filter(|(_, taken)| **taken);
    let value: i128 = taken.map(|(item, _)| item.value.into()).sum();
    let missing = (!packing.proved).then(|| (packing.at_most.into() - value) as u128);
    (packing.taken, missing)
}

/// Packs the items, sorted by hotness descending, into the capacity.
fn pack<V: Amount>(items: &[Packable<V>], capacity: i64, effort: Effort) -> Packing<V> {
    let mut search = Search::new(items, capacity, effort);
    search.greedy();
    let open = search.expand();
    let mut taken = vec![false; items.len()];
    taken[..search.break_at].fill(true);
    for index in &search.best_toggles {
        taken[*index as usize] ^= true;
    }
    Packing {
        taken,
        at_most: open.unwrap_or(search.best),
        proved: open.is_none(),
    }
}

impl<'a, V: Amount> Search<'a, V> {
    /// Finds the break solution.
    fn new(items: &'a [Packable<V>], capacity: i64, effort: Effort) -> Self {
        let (mut value, mut weight, mut break_at) = (V::ZERO, 0, 0);
        while let Some(item) = items.get(break_at)
            && item.weight <= capacity - weight
        {
            weight += item.weight;
            value = value + item.value;
            break_at += 1;
        }
        let link = ROOT;
        Self {
            items,
            capacity,
            break_at,
            start: (value, weight),
            left: break_at,
            right: break_at,
            returnable: weight,
            states: vec![State {
                value,
                weight,
                link,
            }],
            spare: Vec::new(),
            links: Vec::new(),
            best: value,
            best_toggles: Vec::new(),
            steps: 0,
            effort,
        }
    }

    /// Starts from good solutions: the remaining room filled in order, or one hotter item dropped
    /// for the break item.
    fn greedy(&mut self) {
        let room = self.capacity - self.start.1;
        let (mut left, mut value) = (room, self.start.0);
        let mut toggles = Vec::new();
        for (index, item) in self.items.iter().enumerate().skip(self.break_at) {
            if item.weight <= left {
                left -= item.weight;
                value = value + item.value;
                toggles.push(index as u32);
            }
        }
        self.best = value;
        self.best_toggles = toggles;
        let Some(next) = self.items.get(self.break_at).copied() else {
            return;
        };
        for (index, given_up) in self.items[..self.break_at].iter().enumerate() {
            let value = self.start.0 - given_up.value + next.value;
            if next.weight <= room + given_up.weight && value > self.best {
                self.best = value;
                self.best_toggles = vec![index as u32, self.break_at as u32];
            }
        }
    }

    /// Widens the core until no state can exceed the best. If the effort is spent first, returns
    /// the highest bound of the open states.
    fn expand(&mut self) -> Option<V> {
        while !self.states.is_empty() && (self.left > 0 || self.right < self.items.len()) {
            if self.is_spent() {
                return Some(self.open_bound());
            }
            // Widens the side that lags, so that both bounds tighten together.
            let go_right = self.right < self.items.len()
                && (self.left == 0 || self.right - self.break_at <= self.break_at - self.left);
            let index = if go_right {
                self.right += 1;
                self.right - 1
            } else {
                self.left -= 1;
                self.returnable -= self.items[self.left].weight;
                self.left
            };
            if self.may_improve(index) {
                self.toggle(index);
            }
        }
        None
    }

    /// False where the break solution with this item toggled, its room filled or returned at the
    /// density of the break item, cannot exceed the best: then no better solution toggles it.
    fn may_improve(&self, index: usize) -> bool {
        let Some(edge) = self.items.get(self.break_at) else {
            return false;
        };
        let item = self.items[index];
        let (value, weight) = if index < self.break_at {
            (self.start.0 - item.value, self.start.1 - item.weight)
        } else {
            (self.start.0 + item.value, self.start.1 + item.weight)
        };
        let gap = self.best - value + V::ONE;
        !edge
            .value
            .falls_short(self.capacity - weight, edge.weight, gap)
    }

    /// Merges the states with their copies in which this item is toggled, in order of weight. Keeps
    /// those that no other dominates and that may still exceed the best.
    fn toggle(&mut self, index: usize) {
        let old = std::mem::take(&mut self.states);
        self.states = std::mem::take(&mut self.spare);
        self.states.clear();
        self.steps += 2 * old.len() as u64;
        let item = self.items[index];
        let (value, weight) = if index < self.break_at {
            (V::ZERO - item.value, -item.weight)
        } else {
            (item.value, item.weight)
        };
        let edges = self.edges();
        let mut best_link = None;
        let (mut stay, mut copy) = (0, 0);
        while stay < old.len() || copy < old.len() {
            let unchanged = old.get(stay).copied();
            let toggled = old.get(copy).map(|state| State {
                value: state.value + value,
                weight: state.weight + weight,
                link: state.link,
            });
            let (candidate, is_copy) = match (unchanged, toggled) {
                (Some(state), None) => (state, false),
                (None, Some(state)) => (state, true),
                // At equal weight the more valuable comes first, so that it dominates the other.
                (Some(a), Some(b)) if (a.weight, b.value) <= (b.weight, a.value) => (a, false),
                (Some(_), Some(b)) => (b, true),
                (None, None) => break,
            };
            stay += usize::from(!is_copy);
            copy += usize::from(is_copy);
            if let Some(link) = self.keep(candidate, is_copy.then_some(index), edges) {
                best_link = Some(link);
            }
        }
        if let Some(link) = best_link {
            self.best_toggles = self.chain(link);
        }
        self.spare = old;
    }

    /// Appends a state unless it is dominated or hopeless, linking it to the item that was toggled.
    /// Returns its link where it is the best solution so far.
    fn keep(
        &mut self,
        mut state: State<V>,
        toggled: Option<usize>,
        edges: [Option<Packable<V>>; 2],
    ) -> Option<u32> {
        if self
            .states
            .last()
            .is_some_and(|last| state.value <= last.value)
        {
            return None;
        }
        let room = self.capacity - state.weight;
        let improves = room >= 0 && state.value > self.best;
        if !improves && self.is_hopeless(&state, room, edges) {
            return None;
        }
        if let Some(index) = toggled {
            self.links.push(Link {
                before: state.link,
                item: index as u32,
            });
            state.link = (self.links.len() - 1) as u32;
        }
        self.states.push(state);
        improves.then(|| {
            self.best = state.value;
            state.link
        })
    }

    /// The undecided items next to the core: they give the best use of room and the least cost of
    /// returning weight.
    fn edges(&self) -> [Option<Packable<V>>; 2] {
        [
            self.items.get(self.right).copied(),
            self.left.checked_sub(1).map(|index| self.items[index]),
        ]
    }

    /// True where no completion of this state exceeds the best.
    fn is_hopeless(&self, state: &State<V>, room: i64, edges: [Option<Packable<V>>; 2]) -> bool {
        if -room > self.returnable {
            return true;
        }
        match edges[usize::from(room < 0)] {
            Some(edge) => {
                let gap = self.best - state.value + V::ONE;
                edge.value.falls_short(room, edge.weight, gap)
            }
            None => room < 0 || state.value <= self.best,
        }
    }

    /// True where the effort is used up; removes dead links first if links are the limit.
    fn is_spent(&mut self) -> bool {
        let wanted = self.states.len();
        if self.links.len() + wanted > self.effort.links {
            self.drop_dead_links();
        }
        self.steps > self.effort.steps
            || wanted > self.effort.states
            || self.links.len() + wanted > self.effort.links
    }

    /// Highest value that an open state may still reach.
    fn open_bound(&self) -> V {
        let edges = self.edges();
        let reach = |state: &State<V>| {
            let room = self.capacity - state.weight;
            let more = edges[usize::from(room < 0)]
                .map_or(V::ZERO, |edge| edge.value.share(room, edge.weight));
            state.value + more
        };
        let open = self.states.iter().map(reach).max();
        open.map_or(self.best, |open| open.max(self.best))
    }

    /// The items toggled on the way to a link.
    fn chain(&self, mut link: u32) -> Vec<u32> {
        let mut items = Vec::new();
        while let Some(step) = self.links.get(link as usize) {
            items.push(step.item);
            link = step.before;
        }
        items
    }

    /// Removes the links of dead states. A link points only at earlier ones, so one pass forward
    /// renumbers all.
    fn drop_dead_links(&mut self) {
        const DEAD: u32 = u32::MAX - 1;
        self.steps += self.links.len() as u64;
        let mut renumbered = vec![DEAD; self.links.len()];
        for state in &self.states {
            let mut link = state.link as usize;
            while renumbered.get(link) == Some(&DEAD) {
                renumbered[link] = 0;
                link = self.links[link].before as usize;
            }
        }
        let new =
            |renumbered: &[u32], link: u32| renumbered.get(link as usize).map_or(ROOT, |&n| n);
        let mut alive = 0;
        for index in 0..self.links.len() {
            if renumbered[index] == DEAD {
                continue;
            }
            let link = self.links[index];
            renumbered[index] = alive;
            self.links[alive as usize] = Link {
                before: new(&renumbered, link.before),
                ..link
            };
            alive += 1;
        }
        self.links.truncate(alive as usize);
        for state in &mut self.states {
            state.link = new(&renumbered, state.link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Effort, Packable, pack};
    use proptest::prelude::*;

    proptest! {
        /// Removing dead links must not lose the decisions of a state, and a bound after an early
        /// end must hold.
        #[test]
        fn few_links_or_states_give_the_same_packing_or_say_that_it_is_not_proved(
            weights in prop::collection::vec(1_i64..400, 1..40),
            surplus in 0_i64..30, share in 1_i64..10, links in 8_usize..400
        ) {
            let mut items: Vec<Packable<i64>> = weights
                .iter()
                .map(|&weight| Packable { value: weight + surplus, weight })
                .collect();
            items.sort_by(|a, b| (b.value * a.weight).cmp(&(a.value * b.weight)));
            let capacity = weights.iter().sum::<i64>() * share / 10;
            let worth = |taken: &[bool]| {
                let packed = items.iter().zip(taken).filter(|(_, taken)| **taken);
                packed.fold((0, 0), |sum, (item, _)| (sum.0 + item.value, sum.1 + item.weight))
            };
            let ample = Effort { steps: u64::MAX, states: usize::MAX, links: 1 << 24 };
            let best = pack(&items, capacity, ample);
            prop_assert!(best.proved);
            let (best, weight) = worth(&best.taken);
            prop_assert!(weight <= capacity);
            let scarce = pack(&items, capacity, Effort { links, states: links, ..ample });
            let (found, weight) = worth(&scarce.taken);
            prop_assert!(weight <= capacity && found <= best && best <= scarce.at_most);
            prop_assert!(!scarce.proved || found == best);
        }
    }
}
