//! [`ChunkParameters`] holds the parameters of chunk selection: those of ATMem's paper (m, α, N, ε, θ(TR), Freq), the reading of its
//! equation 2, and the most chunks of an object; it checks their ranges ([`ParameterError`]).

use super::cut::CutReading;

/// Parameters of chunk selection. The paper prints only one value, the least tree ratio of an
/// octree, 0.125, which is the default here; the other defaults are ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkParameters {
    /// m: children of an inner node of the tree, at least 2.
    pub arity: u32,
    /// The reading of equation 2.
    pub cut: CutReading,
    /// α (equation 2): a critical chunk has at least this fraction of its object's highest
    /// priority, from 0 to 1. To [`CutReading::Prose`] it is also the fall of priority, as a fraction of the highest, that is significant.
    pub alpha: f64,
    /// N (equation 2): the percentage of an object's chunks, the hottest, that can be critical by sampling by [`CutReading::Printed`] (more
    /// where several have the priority of the last), and the width of the windows that [`CutReading::Prose`] compares; above 0, at most
    /// 100.
    pub top_percent: f64,
    /// ε (equation 5): the tree ratio that suffices in the object of the highest weight, from 1/m
    /// to 1.
    pub epsilon: f64,
    /// θ(TR) (equation 5): how much higher the ratio must be in the object of the lowest weight,
    /// from 0. At 1 - ε and above no chunk is promoted there.
    pub tree_ratio: f64,
    /// 1/Freq (equation 2): missed reads that one sample represents, at least 1. Counts are in
    /// missed reads: samples times this.
    pub sample_period: u64,
    /// Most chunks of one object, at least 1: bounds the cost of an object of any size.
    pub most_chunks: u32,
}

/// A parameter outside its range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("chunk selection: {name} is {value}, and must be {wanted}")]
pub struct ParameterError {
    name: &'static str,
    value: f64,
    wanted: &'static str,
}

impl Default for ChunkParameters {
    /// An octree; a tenth of the chunks, each with at least a tenth of the highest priority; half
    /// of the leaves more where the weight is lowest; counts unscaled; 4,096 chunks per object.
    fn default() -> Self {
        Self {
            cut: CutReading::Prose,
            alpha: 0.1,
            top_percent: 10.0,
            tree_ratio: 0.5,
            sample_period: 1,
            most_chunks: 4096,
            ..Self::of_arity(8)
        }
    }
}

impl ChunkParameters {
    /// Trees of this arity with ε = 1/m, the paper's lower bound, and no other restriction: every
    /// sampled chunk is critical, and no object needs a higher tree ratio than another. Callers
    /// change the other fields as needed.
    #[must_use]
    pub fn of_arity(arity: u32) -> Self {
        Self {
            arity,
            cut: CutReading::Printed,
            alpha: 0.0,
            top_percent: 100.0,
            epsilon: 1.0 / f64::from(arity),
            tree_ratio: 0.0,
            sample_period: 1,
            most_chunks: u32::MAX,
        }
    }

    /// Checks the ranges documented at the fields.
    ///
    /// # Errors
    /// The first parameter outside its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        let least_ratio = 1.0 / f64::from(self.arity);
        let rules = [
            ("m", f64::from(self.arity), self.arity >= 2, "at least 2"),
            (
                "alpha",
                self.alpha,
                (0.0..=1.0).contains(&self.alpha),
                "from 0 to 1",
            ),
            (
                "N",
                self.top_percent,
                self.top_percent > 0.0 && self.top_percent <= 100.0,
                "above 0 and at most 100 per cent",
            ),
            (
                "epsilon",
                self.epsilon,
                (least_ratio..=1.0).contains(&self.epsilon),
                "from 1/m to 1",
            ),
            (
                "the tree ratio",
                self.tree_ratio,
                self.tree_ratio >= 0.0 && self.tree_ratio.is_finite(),
                "at least 0",
            ),
            (
                "the sample period",
                self.sample_period as f64,
                self.sample_period >= 1,
                "at least 1",
            ),
            (
                "the number of chunks",
                f64::from(self.most_chunks),
                self.most_chunks >= 1,
                "at least 1",
            ),
        ];
        match rules.into_iter().find(|(.., holds, _)| !holds) {
            Some((name, value, _, wanted)) => Err(ParameterError {
                name,
                value,
                wanted,
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ChunkParameters;

    #[test]
    fn a_parameter_out_of_range_is_named_with_what_was_expected() {
        let good = ChunkParameters::default();
        assert_eq!(good.check(), Ok(()));
        let bad = [
            ChunkParameters { arity: 1, ..good },
            ChunkParameters {
                alpha: -0.1,
                ..good
            },
            ChunkParameters {
                alpha: f64::NAN,
                ..good
            },
            ChunkParameters {
                top_percent: 0.0,
                ..good
            },
            ChunkParameters {
                top_percent: 101.0,
                ..good
            },
            ChunkParameters {
                tree_ratio: f64::INFINITY,
                ..good
            },
            ChunkParameters {
                sample_period: 0,
                ..good
            },
            ChunkParameters {
                most_chunks: 0,
                ..good
            },
        ];
        for parameters in bad {
            assert!(parameters.check().is_err(), "{parameters:?}");
        }
        let below = ChunkParameters {
            epsilon: 0.1,
            ..good
        };
        assert_eq!(
            below.check().unwrap_err().to_string(),
            "chunk selection: epsilon is 0.1, and must be from 1/m to 1"
        );
    }
}
