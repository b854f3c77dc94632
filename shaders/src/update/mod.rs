//! Optimizer steps: fixed shader texts, each over a flat stretch of all parameters at once.
//!
//! Buffers are `b0` parameters, `b1` gradients, `b2` first moments (velocities), `b3` second moments. Words of `p`, in
//! order, are `groups`, `count` (elements), then floats as their bits. One thread takes one element, 256 a workgroup.

/// An optimizer's step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Update {
    /// The shader; its entry point is `main`.
    pub text: &'static str,
    /// The buffers that it binds: parameters, gradients and as many moments as are left.
    pub buffers: usize,
    /// The names of the words after `groups` and `count`: bits of f32.
    pub floats: &'static [&'static str],
}

/// Elements that one workgroup takes.
pub const ELEMENTS_PER_GROUP: u64 = 256;

/// Stochastic gradient descent without momentum; `decay` is the L2 penalty (added to the gradient).
pub const SGD: Update = Update { text: include_str!("sgd.wgsl"), buffers: 2, floats: &["lr", "decay"] };

/// With momentum: `v = momentum v + g`, `x -= lr v`.
pub const SGD_MOMENTUM: Update =
    Update { text: include_str!("sgd_momentum.wgsl"), buffers: 3, floats: &["lr", "decay", "momentum"] };

/// With Nesterov's momentum: `v = momentum v + g`, `x -= lr (g + momentum v)`.
pub const SGD_NESTEROV: Update =
    Update { text: include_str!("sgd_nesterov.wgsl"), buffers: 3, floats: &["lr", "decay", "momentum"] };

/// Adam; `decay` is the L2 penalty, `correction1` is `1 / (1 - beta1^step)`, `correction2` is `1 / (1 - beta2^step)`.
pub const ADAM: Update = Update {
    text: include_str!("adam.wgsl"),
    buffers: 4,
    floats: &["lr", "decay", "beta1", "beta2", "eps", "correction1", "correction2"],
};

/// Adam with decoupled decay: `x -= lr decay x` first.
pub const ADAMW: Update = Update { text: include_str!("adamw.wgsl"), buffers: 4, floats: ADAM.floats };

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

    #[cfg(feature = "generate")]
    #[test]
    fn every_text_is_valid() {
        for update in [SGD, SGD_MOMENTUM, SGD_NESTEROV, ADAM, ADAMW] {
            assert_eq!(crate::generate::validate(update.text), Ok(()));
        }
    }
}
