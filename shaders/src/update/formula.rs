//! The formulas of the shader texts, on one element, for loops of the CPU.

use crate::math::Arithmetic;

/// The most floats that a formula has.
const MOST: usize = 7;

/// A step on one element.
pub trait Formula {
    /// How many floats it takes: the words behind `groups` and `count`.
    const FLOATS: usize;
    /// How many moments a parameter has.
    const MOMENTS: usize;

    /// The new parameter and moments; moments that it lacks are 0.
    fn apply<A: Arithmetic>(p: &[f32; MOST], x: f32, gradient: f32, moments: [f32; 2]) -> (f32, [f32; 2]);

    /// The floats, as `apply` takes them.
    fn floats(given: &[f32]) -> [f32; MOST] {
        std::array::from_fn(|k| given.get(k).copied().unwrap_or(0.0))
    }
}

/// Something that is made for every formula.
pub trait Visit {
    /// What it gives.
    type Out;
    /// For one.
    fn visit<F: Formula>(self) -> Self::Out;
}

/// `sgd.wgsl`
pub struct Sgd;
/// `sgd_momentum.wgsl`
pub struct Momentum;
/// `sgd_nesterov.wgsl`
pub struct Nesterov;
/// `adam.wgsl`
pub struct Adam;
/// `adamw.wgsl`
pub struct AdamW;

impl Formula for Sgd {
    const FLOATS: usize = 2;
    const MOMENTS: usize = 0;

    #[inline(always)]
    fn apply<A: Arithmetic>([lr, decay, ..]: &[f32; MOST], x: f32, g: f32, _: [f32; 2]) -> (f32, [f32; 2]) {
        let g = A::fma(*decay, x, g);
        (A::fma(-lr, g, x), [0.0; 2])
    }
}

impl Formula for Momentum {
    const FLOATS: usize = 3;
    const MOMENTS: usize = 1;

    #[inline(always)]
    fn apply<A: Arithmetic>(
        [lr, decay, momentum, ..]: &[f32; MOST],
        x: f32,
        g: f32,
        [v, _]: [f32; 2],
    ) -> (f32, [f32; 2]) {
        let g = A::fma(*decay, x, g);
        let v = A::fma(*momentum, v, g);
        (A::fma(-lr, v, x), [v, 0.0])
    }
}

impl Formula for Nesterov {
    const FLOATS: usize = 3;
    const MOMENTS: usize = 1;

    #[inline(always)]
    fn apply<A: Arithmetic>(
        [lr, decay, momentum, ..]: &[f32; MOST],
        x: f32,
        g: f32,
        [v, _]: [f32; 2],
    ) -> (f32, [f32; 2]) {
        let g = A::fma(*decay, x, g);
        let v = A::fma(*momentum, v, g);
        (A::fma(-lr, A::fma(*momentum, v, g), x), [v, 0.0])
    }
}

/// `lr` times Adam's step, and the moments.
#[inline(always)]
fn adam<A: Arithmetic>(p: &[f32; MOST], g: f32, [m, v]: [f32; 2]) -> (f32, [f32; 2]) {
    let [lr, _, beta1, beta2, eps, correction1, correction2] = p;
    let m = A::fma(*beta1, m, (1.0 - beta1) * g);
    let v = A::fma(*beta2, v, (1.0 - beta2) * g * g);
    let step = m * correction1 / ((v * correction2).sqrt() + eps);
    (lr * step, [m, v])
}

impl Formula for Adam {
    const FLOATS: usize = 7;
    const MOMENTS: usize = 2;

    #[inline(always)]
    fn apply<A: Arithmetic>(p: &[f32; MOST], x: f32, g: f32, moments: [f32; 2]) -> (f32, [f32; 2]) {
        let (step, moments) = adam::<A>(p, A::fma(p[1], x, g), moments);
        (x - step, moments)
    }
}

impl Formula for AdamW {
    const FLOATS: usize = 7;
    const MOMENTS: usize = 2;

    #[inline(always)]
    fn apply<A: Arithmetic>(p: &[f32; MOST], x: f32, g: f32, moments: [f32; 2]) -> (f32, [f32; 2]) {
        let (step, moments) = adam::<A>(p, g, moments);
        (A::fma(x, A::fma(-p[0], p[1], 1.0), -step), moments)
    }
}
