//! Optimizer steps: fixed shader texts, each over a flat stretch of all parameters at once.
//!
//! Buffers are `b0` parameters, `b1` gradients, `b2` first moments (velocities), `b3` second moments. Words of `p`, in
//! order, are `groups`, `count` (elements), then floats as their bits. One thread takes one element, 256 a workgroup.
//! What the CPU does stands in `formula.rs`, a function for each text.

pub mod formula;

use formula::{Formula, Visit};

/// An optimizer's step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Update {
    /// The shader; its entry point is `main`.
    pub text: &'static str,
    /// The buffers that it binds: parameters, gradients and as many moments as are left.
    pub buffers: usize,
    /// The names of the words after `groups` and `count`: bits of f32.
    pub floats: &'static [&'static str],
    /// What the CPU does.
    rule: Rule,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    Sgd,
    Momentum,
    Nesterov,
    Adam,
    AdamW,
}

impl Update {
    /// Hands the formula to something that is made for each, such as a loop over arrays.
    pub fn visit<V: Visit>(&self, visit: V) -> V::Out {
        match self.rule {
            Rule::Sgd => visit.visit::<formula::Sgd>(),
            Rule::Momentum => visit.visit::<formula::Momentum>(),
            Rule::Nesterov => visit.visit::<formula::Nesterov>(),
            Rule::Adam => visit.visit::<formula::Adam>(),
            Rule::AdamW => visit.visit::<formula::AdamW>(),
        }
    }

    /// The formula on one element: the new parameter and moments.
    pub fn apply(&self, floats: &[f32], x: f32, gradient: f32, moments: [f32; 2]) -> (f32, [f32; 2]) {
        struct One<'a>(&'a [f32], f32, f32, [f32; 2]);
        impl Visit for One<'_> {
            type Out = (f32, [f32; 2]);
            fn visit<F: Formula>(self) -> Self::Out {
                F::apply::<crate::math::Plain>(&F::floats(self.0), self.1, self.2, self.3)
            }
        }
        self.visit(One(floats, x, gradient, moments))
    }
}

/// Elements that one workgroup takes.
pub const ELEMENTS_PER_GROUP: u64 = 256;

/// Stochastic gradient descent without momentum; `decay` is the L2 penalty (added to the gradient).
pub const SGD: Update =
    Update { text: include_str!("sgd.wgsl"), buffers: 2, floats: &["lr", "decay"], rule: Rule::Sgd };

/// With momentum: `v = momentum v + g`, `x -= lr v`.
pub const SGD_MOMENTUM: Update = Update {
    text: include_str!("sgd_momentum.wgsl"),
    buffers: 3,
    floats: &["lr", "decay", "momentum"],
    rule: Rule::Momentum,
};

/// With Nesterov's momentum: `v = momentum v + g`, `x -= lr (g + momentum v)`.
pub const SGD_NESTEROV: Update = Update {
    text: include_str!("sgd_nesterov.wgsl"),
    buffers: 3,
    floats: &["lr", "decay", "momentum"],
    rule: Rule::Nesterov,
};

/// Adam; `decay` is the L2 penalty, `correction1` is `1 / (1 - beta1^step)`, `correction2` is `1 / (1 - beta2^step)`.
pub const ADAM: Update = Update {
    text: include_str!("adam.wgsl"),
    buffers: 4,
    floats: &["lr", "decay", "beta1", "beta2", "eps", "correction1", "correction2"],
    rule: Rule::Adam,
};

/// Adam with decoupled decay: `x -= lr decay x` first.
pub const ADAMW: Update =
    Update { text: include_str!("adamw.wgsl"), buffers: 4, floats: ADAM.floats, rule: Rule::AdamW };

/// The two bias corrections of Adam at a step (the first is 1), in f64 from the betas that the shader sees.
pub fn bias_corrections(beta1: f32, beta2: f32, step: u32) -> [f32; 2] {
    [beta1, beta2].map(|beta| (1.0 / -f64::exp_m1(f64::from(step) * f64::from(beta).ln())) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bias_corrections_undo_the_bias_of_the_first_step() {
        let [first, second] = bias_corrections(0.9, 0.999, 1);
        assert!((f64::from(first) - 10.0).abs() < 1e-5 && (f64::from(second) - 1000.0).abs() < 0.02);
        assert_eq!(bias_corrections(0.9, 0.999, 1_000_000), [1.0, 1.0]);
        assert_eq!(bias_corrections(0.0, 0.0, 1), [1.0, 1.0]);
    }

    #[test]
    fn the_words_of_every_text_are_those_stated() {
        for update in [SGD, SGD_MOMENTUM, SGD_NESTEROV, ADAM, ADAMW] {
            let inside = update.text.split_once("struct P {").and_then(|(_, rest)| rest.split_once('}'));
            let names =
                inside.map_or("", |(inside, _)| inside).lines().filter_map(|line| line.trim().strip_suffix(": u32,"));
            let stated = ["groups", "count"].iter().chain(update.floats);
            assert!(names.eq(stated.copied()), "{}", update.text);
            assert_eq!(update.text.matches("var<storage").count(), update.buffers);
        }
    }

    #[test]
    fn formulas_have_the_floats_and_moments_of_their_texts() {
        struct Counts;
        impl Visit for Counts {
            type Out = (usize, usize);
            fn visit<F: Formula>(self) -> (usize, usize) {
                (F::FLOATS, F::MOMENTS)
            }
        }
        for update in [SGD, SGD_MOMENTUM, SGD_NESTEROV, ADAM, ADAMW] {
            assert_eq!(update.visit(Counts), (update.floats.len(), update.buffers - 2), "{}", update.text);
        }
    }

    #[test]
    fn formulas_give_what_the_texts_say() {
        let near = |found: f32, expected: f64| {
            assert!((f64::from(found) - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{expected}, found {found}");
        };
        let (x, g, m, v) = (0.7, -0.3, 0.2, 0.05);
        let all = [0.1f32, 0.01, 0.9, 0.99, 1e-3, 10.0, 100.0];
        let exact = all.map(f64::from);
        let [lr, decay, beta1, beta2, eps, correction1, correction2] = exact;
        let penalised = g + decay * x;
        near(SGD.apply(&all[..2], 0.7, -0.3, [0.0; 2]).0, x - lr * penalised);
        let velocity = beta1 * m + penalised;
        let (moved, moments) = SGD_MOMENTUM.apply(&all[..3], 0.7, -0.3, [0.2, 0.0]);
        near(moved, x - lr * velocity);
        near(moments[0], velocity);
        near(SGD_NESTEROV.apply(&all[..3], 0.7, -0.3, [0.2, 0.0]).0, x - lr * (penalised + beta1 * velocity));
        for (update, g, kept) in [(ADAM, penalised, x), (ADAMW, g, x * (1.0 - lr * decay))] {
            let (m, v) = (beta1 * m + (1.0 - beta1) * g, beta2 * v + (1.0 - beta2) * g * g);
            let (moved, moments) = update.apply(&all, 0.7, -0.3, [0.2, 0.05]);
            near(moved, kept - lr * m * correction1 / ((v * correction2).sqrt() + eps));
            near(moments[0], m);
            near(moments[1], v);
        }
    }

    #[cfg(feature = "generate")]
    #[test]
    fn every_text_is_valid() {
        for update in [SGD, SGD_MOMENTUM, SGD_NESTEROV, ADAM, ADAMW] {
            assert_eq!(crate::generate::validate(update.text), Ok(()));
        }
    }
}
