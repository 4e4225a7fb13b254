//! Computes θ' of each object (ATMem, section 4.3.2): the share of critical chunks below a node of its tree from which all chunks below the
//! node become critical. It is low for objects of high weight (mean priority of the critical chunks), and high for objects of low weight.

use super::parameters::ChunkParameters;

/// The lowest and the highest weight of all objects that have one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WeightSpace {
    lowest: f64,
    highest: f64,
}

impl WeightSpace {
    /// The span of these weights; no weights give an empty space, which is never queried.
    pub(super) fn of(weights: impl Iterator<Item = f64>) -> Self {
        let empty = Self {
            lowest: f64::INFINITY,
            highest: 0.0,
        };
        weights.fold(empty, |space, weight| Self {
            lowest: space.lowest.min(weight),
            highest: space.highest.max(weight),
        })
    }

    /// θ' (equation 5) of an object of this weight: from ε for the highest weight to ε + θ(TR) for
    /// the lowest. With one object, or all weights equal, the paper divides by zero; no object
    /// weighs less than another there, so the result is ε.
    pub(super) fn threshold(&self, weight: f64, parameters: &ChunkParameters) -> f64 {
        let span = self.highest - self.lowest;
        if span > 0.0 {
            parameters.epsilon + parameters.tree_ratio * (self.highest - weight) / span
        } else {
            parameters.epsilon
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WeightSpace;
    use crate::chunks::ChunkParameters;

    #[test]
    fn the_threshold_runs_from_epsilon_at_the_highest_weight_to_epsilon_and_the_tree_ratio() {
        let parameters = ChunkParameters {
            tree_ratio: 0.5,
            ..ChunkParameters::of_arity(4)
        };
        let space = WeightSpace::of([2.0, 10.0, 4.0].into_iter());
        let thresholds = [10.0, 4.0, 2.0].map(|weight| space.threshold(weight, &parameters));
        assert_eq!(thresholds, [0.25, 0.625, 0.75]);
    }

    #[test]
    fn equal_weights_and_a_single_object_promote_at_epsilon() {
        let parameters = ChunkParameters {
            tree_ratio: 0.5,
            ..ChunkParameters::of_arity(4)
        };
        for weights in [vec![3.0], vec![3.0; 5]] {
            let space = WeightSpace::of(weights.into_iter());
            assert_eq!(space.threshold(3.0, &parameters), 0.25);
        }
    }
}
