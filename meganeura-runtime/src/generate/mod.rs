//! Text from a decoder: which token follows, when to stop, and text from tokens while they come.
//!
//! In: scores of all tokens as plain `f32`, so that any model fits. Out: tokens, one after the other. Nothing here
//! knows a device or a model; the same scores, settings and seed give the same tokens.

mod bpe;
mod sampler;
mod split;
mod text;
mod tokenizer;

pub use sampler::Sampler;
pub use text::TextStream;
pub use tokenizer::Tokenizer;

use crate::Result;

/// What to generate: a prompt's continuation by a sampler, up to a stop token or a number of tokens.
#[derive(Clone, Debug)]
pub struct Generation {
    tokens: Vec<u32>,
    sampler: Sampler,
    stop: Vec<u32>,
    limit: usize,
}

impl Generation {
    /// Continues a prompt without an end.
    pub fn new(prompt: &[u32], sampler: Sampler) -> Generation {
        Generation { tokens: prompt.to_vec(), sampler, stop: vec![], limit: usize::MAX }
    }

    /// Ends before a token of these.
    #[must_use]
    pub fn stop(mut self, tokens: &[u32]) -> Generation {
        self.stop.extend(tokens);
        self
    }

    /// Ends after so many tokens.
    #[must_use]
    pub fn limit(self, tokens: usize) -> Generation {
        Generation { limit: tokens, ..self }
    }

    /// Generates token by token. `scores(tokens, position)` gives the scores for what follows `tokens`, which are the
    /// whole prompt at position 0 and then one token at a time; a model with a cache needs no more. An error ends it.
    pub fn run<F>(self, scores: F) -> Tokens<F>
    where
        F: FnMut(&[u32], u32) -> Result<Vec<f32>>,
    {
        let Generation { tokens, sampler, stop, limit } = self;
        Tokens { tokens, seen: 0, sampler, stop, left: limit, stopped: None, scores }
    }
}

/// Tokens as they are generated; made by [`Generation::run`].
#[derive(Debug)]
pub struct Tokens<F> {
    /// The prompt and what was generated.
    tokens: Vec<u32>,
    /// How many of them the model has seen.
    seen: usize,
    sampler: Sampler,
    stop: Vec<u32>,
    left: usize,
    stopped: Option<u32>,
    scores: F,
}

impl<F> Tokens<F> {
    /// The prompt and what was generated so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The stop token that ended it; none if something else did, or nothing yet.
    pub fn stopped(&self) -> Option<u32> {
        self.stopped
    }
}

impl<F: FnMut(&[u32], u32) -> Result<Vec<f32>>> Iterator for Tokens<F> {
    type Item = Result<u32>;

    fn next(&mut self) -> Option<Result<u32>> {
        self.left = self.left.checked_sub(1)?;
        let next = match (self.scores)(&self.tokens[self.seen..], self.seen as u32) {
            Ok(scores) => self.sampler.sample(&scores, &self.tokens),
            Err(error) => Err(error),
        };
        self.seen = self.tokens.len();
        match next {
            Ok(token) if self.stop.contains(&token) => {
                (self.stopped, self.left) = (Some(token), 0);
                None
            }
            Ok(token) => {
                self.tokens.push(token);
                Some(Ok(token))
            }
            Err(error) => {
                self.left = 0;
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Error;

    /// Scores of five tokens whose best is the last token plus one.
    fn successor(tokens: &[u32]) -> Vec<f32> {
        (0..5).map(|token| if token == (tokens[tokens.len() - 1] + 1) % 5 { 2.0 } else { 1.0 }).collect()
    }

    #[test]
    fn the_prompt_is_scored_at_once_and_then_each_token() {
        let mut calls = vec![];
        let mut tokens = Generation::new(&[3, 0], Sampler::greedy()).stop(&[4]).run(|tokens, position| {
            calls.push((tokens.to_vec(), position));
            Ok(successor(tokens))
        });
        let generated: Vec<u32> = tokens.by_ref().map(Result::unwrap).collect();
        assert_eq!((generated, tokens.tokens(), tokens.stopped()), (vec![1, 2, 3], &[3, 0, 1, 2, 3][..], Some(4)));
        assert!(tokens.next().is_none());
        drop(tokens);
        assert_eq!(calls, [(vec![3, 0], 0), (vec![1], 2), (vec![2], 3), (vec![3], 4)]);
    }

    #[test]
    fn the_limit_counts_generated_tokens() {
        for limit in [0, 1, 7] {
            let run = Generation::new(&[0], Sampler::greedy()).limit(limit).run(|tokens, _| Ok(successor(tokens)));
            let tokens: Vec<u32> = run.map(Result::unwrap).collect();
            assert_eq!(tokens, [1, 2, 3, 4, 0, 1, 2][..limit]);
        }
    }

    #[test]
    fn an_error_ends_it() {
        let lost = || Error::DeviceLost { device: "d".into(), reason: "r".into() };
        let run = Generation::new(&[0], Sampler::greedy())
            .run(|tokens, position| if position == 2 { Err(lost()) } else { Ok(successor(tokens)) });
        let results: Vec<Result<u32>> = run.collect();
        assert_eq!(results.len(), 3);
        assert!(matches!(results[..], [Ok(1), Ok(2), Err(Error::DeviceLost { .. })]));
        let nan = Generation::new(&[0], Sampler::greedy()).run(|_, _| Ok(vec![1.0, f32::NAN])).collect::<Vec<_>>();
        assert!(matches!(nan[..], [Err(Error::Mismatch { .. })]));
    }
}
