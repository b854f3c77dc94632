//! Optimizers: which update kernel runs over all parameters, and with which numbers.
//!
//! The definitions are those of PyTorch's `torch.optim`. Rates may change between steps.

use meganeura_shaders::update::{self, Update};

use crate::{Error, Result};

/// An optimizer with its numbers; made from [`Sgd`], [`Adam`] or [`AdamW`].
#[derive(Clone, Debug)]
pub struct Optimizer {
    update: Update,
    values: Vec<(&'static str, f64)>,
}

impl Optimizer {
    /// The learning rate.
    pub fn rate(&self) -> f64 {
        self.value("lr")
    }

    /// Sets the learning rate of the steps that follow.
    pub fn set_rate(&mut self, rate: f64) {
        self.set("lr", rate);
    }

    fn value(&self, name: &str) -> f64 {
        self.values.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, value)| *value)
    }

    fn set(&mut self, name: &'static str, value: f64) {
        self.values.retain(|(known, _)| *known != name);
        self.values.push((name, value));
    }

    pub(crate) fn update(&self) -> &Update {
        &self.update
    }

    /// The number of moments that it keeps for each parameter.
    pub(crate) fn moments(&self) -> usize {
        self.update.buffers - 2
    }

    /// Whether its numbers are such that it can run.
    pub(crate) fn check(&self) -> Result<()> {
        let fits = |(name, value): &&(&str, f64)| match *name {
            "beta1" | "beta2" => (0.0..1.0).contains(value),
            _ => value.is_finite() && *value >= 0.0,
        };
        match self.values.iter().find(|pair| !fits(pair)) {
            None => Ok(()),
            Some((name, value)) => {
                let expected = if name.starts_with("beta") { "from 0 to below 1" } else { "finite and not negative" };
                Err(Error::Mismatch {
                    name: (*name).into(),
                    expected: format!("a number that is {expected}"),
                    found: value.to_string(),
                })
            }
        }
    }

    /// The words of `p` for `count` elements at a step, the first being 1.
    pub(crate) fn words(&self, groups: u32, count: u32, step: u32) -> Vec<u32> {
        let [first, second] = update::bias_corrections(self.value("beta1") as f32, self.value("beta2") as f32, step);
        let float = |name: &&str| match *name {
            "correction1" => first.to_bits(),
            "correction2" => second.to_bits(),
            name => (self.value(name) as f32).to_bits(),
        };
        [groups, count].into_iter().chain(self.update.floats.iter().map(float)).collect()
    }
}

macro_rules! number {
    ($(#[$about:meta])* $method:ident $name:literal) => {
        $(#[$about])*
        #[must_use]
        pub fn $method(mut self, value: f64) -> Self {
            self.0.set($name, value);
            self
        }
    };
}

macro_rules! optimizer {
    ($Name:ident) => {
        impl From<$Name> for Optimizer {
            fn from(made: $Name) -> Optimizer {
                made.0
            }
        }
    };
}

/// Stochastic gradient descent: `v = momentum v + g`, `x -= lr v`.
#[derive(Clone, Debug)]
pub struct Sgd(Optimizer);

impl Sgd {
    /// Without momentum or decay.
    pub fn new(rate: f64) -> Sgd {
        Sgd(Optimizer { update: update::SGD, values: vec![("lr", rate)] })
    }

    /// With momentum; 0 is none.
    #[must_use]
    pub fn momentum(mut self, momentum: f64) -> Sgd {
        self.0.update = if momentum == 0.0 { update::SGD } else { update::SGD_MOMENTUM };
        self.0.set("momentum", momentum);
        self
    }

    /// With Nesterov's momentum: `v = momentum v + g`, `x -= lr (g + momentum v)`.
    #[must_use]
    pub fn nesterov(mut self, momentum: f64) -> Sgd {
        self.0.update = update::SGD_NESTEROV;
        self.0.set("momentum", momentum);
        self
    }

    number! {
        /// The L2 penalty, added to the gradient.
        decay "decay"
    }
}

/// Adam (Kingma and Ba, 2015) with bias correction and `eps` outside the root.
#[derive(Clone, Debug)]
pub struct Adam(Optimizer);

const ADAM: [(&str, f64); 4] = [("beta1", 0.9), ("beta2", 0.999), ("eps", 1e-8), ("decay", 0.0)];

impl Adam {
    /// With the paper's β₁ = 0.9, β₂ = 0.999 and eps = 1e-8.
    pub fn new(rate: f64) -> Adam {
        Adam(Optimizer { update: update::ADAM, values: ADAM.into_iter().chain([("lr", rate)]).collect() })
    }

    number! {
        /// β₁, the decay of the first moment.
        beta1 "beta1"
    }
    number! {
        /// β₂, the decay of the second moment.
        beta2 "beta2"
    }
    number! {
        /// Added to the root of the second moment.
        eps "eps"
    }
    number! {
        /// The L2 penalty, added to the gradient.
        decay "decay"
    }
}

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019): `x -= lr decay x` first.
#[derive(Clone, Debug)]
pub struct AdamW(Optimizer);

impl AdamW {
    /// With β₁ = 0.9, β₂ = 0.999, eps = 1e-8 and decay 0.01, as PyTorch does.
    pub fn new(rate: f64) -> AdamW {
        let mut made = Optimizer { update: update::ADAMW, values: ADAM.into_iter().chain([("lr", rate)]).collect() };
        made.set("decay", 0.01);
        AdamW(made)
    }

    number! {
        /// β₁, the decay of the first moment.
        beta1 "beta1"
    }
    number! {
        /// β₂, the decay of the second moment.
        beta2 "beta2"
    }
    number! {
        /// Added to the root of the second moment.
        eps "eps"
    }
    number! {
        /// How much of `lr x` each step takes away.
        decay "decay"
    }
}

optimizer!(Sgd);
optimizer!(Adam);
optimizer!(AdamW);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_the_names_of_the_text() {
        let adam = Optimizer::from(AdamW::new(0.5).eps(0.25));
        let words = adam.words(3, 700, 1);
        assert_eq!(words.len(), 2 + adam.update().floats.len());
        assert_eq!(words[..2], [3, 700]);
        let at = |name: &str| {
            adam.update().floats.iter().position(|known| *known == name).map(|k| f32::from_bits(words[2 + k]))
        };
        assert_eq!((at("lr"), at("eps"), at("decay")), (Some(0.5), Some(0.25), Some(0.01)));
        assert!(at("correction1").is_some_and(|c| (c - 10.0).abs() < 1e-5));
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let error = |optimizer: Optimizer| optimizer.check().map_err(|e| e.to_string());
        assert!(error(Sgd::new(f64::NAN).into()).is_err_and(|e| e.contains("`lr`") && e.contains("NaN")));
        assert!(error(Adam::new(0.1).beta2(1.0).into()).is_err_and(|e| e.contains("`beta2`")));
        assert_eq!(error(Adam::new(0.1).into()), Ok(()));
    }
}
