//! One token from scores.
//!
//! In: a score for each token and the tokens so far. Out: the id of one. The order is fixed: penalty of repetitions,
//! temperature, the k best, the fewest that reach p, one draw. Of equal scores the smaller id comes first, so the
//! outcome is a function of scores, history, seed and the number of draws before.

use crate::random::{Stream, exp};
use crate::{Error, Result};

/// Chooses tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    temperature: f32,
    top_k: usize,
    top_p: f32,
    penalty: f32,
    seed: u64,
    draws: u64,
}

impl Sampler {
    /// The best token, always.
    pub fn greedy() -> Sampler {
        Sampler { temperature: 0.0, top_k: usize::MAX, top_p: 1.0, penalty: 1.0, seed: 0, draws: 0 }
    }

    /// Draws by the softmax of scores divided by `temperature`; 0 is greedy.
    pub fn new(temperature: f32) -> Sampler {
        Sampler { temperature, ..Sampler::greedy() }
    }

    /// Draws among the `k` best, at least one.
    #[must_use]
    pub fn top_k(self, k: usize) -> Sampler {
        Sampler { top_k: k, ..self }
    }

    /// Draws among the fewest best whose probabilities add up to at least `p`, in (0, 1].
    #[must_use]
    pub fn top_p(self, p: f32) -> Sampler {
        Sampler { top_p: p, ..self }
    }

    /// Divides positive scores of tokens that there are already by `penalty` and multiplies negative ones with it.
    #[must_use]
    pub fn repetition_penalty(self, penalty: f32) -> Sampler {
        Sampler { penalty, ..self }
    }

    /// What the draws follow from; 0 if nothing is said.
    #[must_use]
    pub fn seed(self, seed: u64) -> Sampler {
        Sampler { seed, draws: 0, ..self }
    }

    /// A token for `scores`, given the tokens so far.
    ///
    /// Fails with [`Error::Mismatch`] if a score is NaN or +∞, all are −∞, there is none, or a setting is out of range.
    pub fn sample(&mut self, scores: &[f32], history: &[u32]) -> Result<u32> {
        let candidates = self.candidates(scores, history)?;
        let mut chosen = candidates[0].0;
        if candidates.len() > 1 {
            // 53 bits in [0, 1): the smallest probability that counts is 2⁻⁵³.
            let bits = Stream::named(self.seed, "sampler").bits(self.draws) >> 11;
            let mut left = bits as f64 / (1u64 << 53) as f64;
            for (token, probability) in candidates {
                chosen = token;
                left -= probability;
                if left < 0.0 {
                    break;
                }
            }
        }
        self.draws += 1;
        Ok(chosen)
    }

    /// The tokens that may be drawn, the best first, with their probabilities; what [`sample`](Self::sample) draws from.
    pub fn candidates(&self, scores: &[f32], history: &[u32]) -> Result<Vec<(u32, f64)>> {
        self.check()?;
        // Adding zero leaves no negative zero, which the total order would place below the other.
        let mut scores: Vec<f64> = check_scores(scores)?.iter().map(|score| f64::from(*score) + 0.0).collect();
        let penalty = f64::from(self.penalty);
        let mut repeated: Vec<u32> = history.to_vec();
        repeated.sort_unstable();
        repeated.dedup();
        for token in repeated {
            let Some(score) = scores.get_mut(token as usize) else { break };
            *score = if *score > 0.0 { *score / penalty } else { *score * penalty };
        }
        let mut order: Vec<u32> = (0..scores.len() as u32).collect();
        let better = |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b));
        let count = if self.temperature == 0.0 { 1 } else { self.top_k.min(order.len()) };
        if count < order.len() {
            order.select_nth_unstable_by(count, better);
            order.truncate(count);
        }
        order.sort_unstable_by(better);
        let best = scores[order[0] as usize];
        if self.temperature == 0.0 {
            return Ok(vec![(order[0], 1.0)]);
        }
        let weight = |token: &u32| exp((scores[*token as usize] - best) / f64::from(self.temperature));
        let weights: Vec<f64> = order.iter().map(weight).collect();
        let all: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let reach = f64::from(self.top_p) * all;
        let kept = if self.top_p < 1.0 {
            let before = weights.iter().take_while(|weight| {
                sum += **weight;
                sum < reach
            });
            (before.count() + 1).min(order.len())
        } else {
            order.len()
        };
        let all: f64 = weights[..kept].iter().sum();
        let likely = order.into_iter().zip(weights).take(kept).filter(|(_, weight)| *weight > 0.0);
        Ok(likely.map(|(token, weight)| (token, weight / all)).collect())
    }

    fn check(&self) -> Result<()> {
        let refuse = |name: &str, expected: &str, found: String| {
            Err(Error::Mismatch { name: name.into(), expected: expected.into(), found })
        };
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return refuse("temperature", "a finite number from 0 on", self.temperature.to_string());
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return refuse("top_p", "a number above 0 and up to 1", self.top_p.to_string());
        }
        if !(self.penalty > 0.0 && self.penalty.is_finite()) {
            return refuse("repetition_penalty", "a finite number above 0", self.penalty.to_string());
        }
        if self.top_k == 0 {
            return refuse("top_k", "at least 1", "0".into());
        }
        Ok(())
    }
}

fn check_scores(scores: &[f32]) -> Result<&[f32]> {
    let refuse = |expected: &str, found: String| {
        Err(Error::Mismatch { name: "scores".into(), expected: expected.into(), found })
    };
    if let Some(at) = scores.iter().position(|score| score.is_nan() || *score == f32::INFINITY) {
        return refuse("numbers that are not NaN and not infinite", format!("{} for token {at}", scores[at]));
    }
    if scores.iter().all(|score| *score == f32::NEG_INFINITY) {
        return refuse("at least one that is finite", format!("{} of -inf", scores.len()));
    }
    Ok(scores)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Scores whose softmax is these probabilities.
    fn logs(probabilities: &[f64]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln() as f32).collect()
    }

    fn near(found: &[(u32, f64)], expected: &[(u32, f64)]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (a, b) in found.iter().zip(expected) {
            assert!(a.0 == b.0 && (a.1 - b.1).abs() < 1e-7, "{found:?}");
        }
    }

    #[test]
    fn greedy_takes_the_best_and_of_equal_ones_the_smaller_id() {
        let mut sampler = Sampler::greedy();
        assert_eq!(sampler.sample(&[0.5, 2.0, 2.0, -1.0], &[]).unwrap(), 1);
        assert_eq!(sampler.sample(&[f32::NEG_INFINITY, -3.0], &[]).unwrap(), 1);
        assert_eq!(sampler.sample(&[7.0], &[]).unwrap(), 0);
        assert_eq!(Sampler::new(0.0), Sampler::greedy());
        let tie = Sampler::new(1.0).top_k(2).candidates(&[1.0, 3.0, 1.0, 1.0], &[]).unwrap();
        assert_eq!(tie.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(Sampler::greedy().sample(&[-0.0, 0.0], &[]).unwrap(), 0, "zeros are equal");
    }

    #[test]
    fn probabilities_are_those_of_the_softmax() {
        let scores = logs(&[0.1, 0.4, 0.2, 0.3]);
        near(&Sampler::new(1.0).candidates(&scores, &[]).unwrap(), &[(1, 0.4), (3, 0.3), (2, 0.2), (0, 0.1)]);
        // A temperature of ½ squares them: 16, 9, 4, 1 of 30.
        let squares = [(1, 16.0 / 30.0), (3, 9.0 / 30.0), (2, 4.0 / 30.0), (0, 1.0 / 30.0)];
        near(&Sampler::new(0.5).candidates(&scores, &[]).unwrap(), &squares);
        near(
            &Sampler::new(1.0).top_k(3).candidates(&scores, &[]).unwrap(),
            &[(1, 4. / 9.), (3, 3. / 9.), (2, 2. / 9.)],
        );
        near(&Sampler::new(1.0).top_k(1).candidates(&scores, &[]).unwrap(), &[(1, 1.0)]);
        // 0.4 and 0.3 reach 0.65 but not 0.75; the first alone reaches 0.35.
        near(&Sampler::new(1.0).top_p(0.65).candidates(&scores, &[]).unwrap(), &[(1, 4. / 7.), (3, 3. / 7.)]);
        near(
            &Sampler::new(1.0).top_p(0.75).candidates(&scores, &[]).unwrap(),
            &[(1, 4. / 9.), (3, 3. / 9.), (2, 2. / 9.)],
        );
        near(&Sampler::new(1.0).top_p(0.35).candidates(&scores, &[]).unwrap(), &[(1, 1.0)]);
        near(&Sampler::new(1.0).top_p(1e-9).candidates(&scores, &[]).unwrap(), &[(1, 1.0)]);
        // p counts after k: of 4/7 and 3/7 the first reaches ½.
        near(&Sampler::new(1.0).top_k(2).top_p(0.5).candidates(&scores, &[]).unwrap(), &[(1, 1.0)]);
        let far = Sampler::new(1.0).candidates(&[0.0, -1e30, f32::NEG_INFINITY], &[]).unwrap();
        assert_eq!(far, [(0, 1.0)]);
    }

    #[test]
    fn repetitions_are_penalised_once_and_towards_less_likely() {
        let sampler = Sampler::greedy().repetition_penalty(2.0);
        let best = |scores: &[f32], history: &[u32]| sampler.clone().sample(scores, history).unwrap();
        assert_eq!((best(&[3.0, 2.0], &[]), best(&[3.0, 2.0], &[0, 0])), (0, 1));
        assert_eq!((best(&[3.0, 1.4], &[0, 0, 0]), best(&[3.0, 1.6], &[0])), (0, 1));
        assert_eq!(best(&[-1.0, -1.5], &[0]), 1);
        assert_eq!(best(&[3.0, 2.0], &[9]), 0, "ids that have no score are passed over");
        // ln 4 / 2 = ln 2 against ln 2: half and half.
        let scores = [4f32.ln(), 2f32.ln()];
        near(&Sampler::new(1.0).repetition_penalty(2.0).candidates(&scores, &[0]).unwrap(), &[(0, 0.5), (1, 0.5)]);
    }

    #[test]
    fn draws_follow_the_seed_and_are_as_frequent_as_they_are_likely() {
        let scores = logs(&[0.1, 0.4, 0.2, 0.3]);
        let draw = |seed, count: usize| {
            let mut sampler = Sampler::new(1.0).seed(seed);
            (0..count).map(|_| sampler.sample(&scores, &[]).unwrap()).collect::<Vec<u32>>()
        };
        assert_eq!(draw(5, 100), draw(5, 100));
        assert_ne!(draw(5, 100), draw(6, 100));
        let draws = draw(1, 20_000);
        for (token, p) in [(0, 0.1), (1, 0.4), (2, 0.2), (3, 0.3)] {
            let count = draws.iter().filter(|draw| **draw == token).count() as f64;
            // Five standard deviations of a binomial count.
            assert!((count - 20_000.0 * p).abs() < 5.0 * (20_000.0 * p * (1.0 - p)).sqrt(), "{token}: {count}");
        }
    }

    #[test]
    fn what_cannot_be_sampled_is_an_error() {
        for scores in [&[1.0, f32::NAN][..], &[f32::INFINITY, 0.0], &[f32::NEG_INFINITY; 2], &[]] {
            let error = Sampler::greedy().sample(scores, &[]).unwrap_err();
            assert!(error.to_string().starts_with("`scores`"), "{error}");
        }
        for (sampler, name) in [
            (Sampler::new(-1.0), "temperature"),
            (Sampler::new(f32::NAN), "temperature"),
            (Sampler::new(1.0).top_k(0), "top_k"),
            (Sampler::new(1.0).top_p(0.0), "top_p"),
            (Sampler::new(1.0).top_p(1.5), "top_p"),
            (Sampler::new(1.0).repetition_penalty(0.0), "repetition_penalty"),
        ] {
            let error = sampler.clone().sample(&[1.0, 2.0], &[]).unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{name}`")), "{error}");
        }
    }
}
