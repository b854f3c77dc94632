//! Initial values of parameters.
//!
//! An element's value is a function of (seed, the tensor's name, the element's index) and of nothing else: the same on
//! every device and platform, however the work is cut, and whatever other tensors a model has.

use crate::random::Stream;
use crate::{Error, Result};
use meganeura_shaders::schedule::Init;

/// Elements below which another thread is not worth starting.
const PART: usize = 1 << 18;

/// A tensor's initial values, ready to be computed in any parts.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    stream: Stream,
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Constant(f32),
    Uniform(f64, f64),
    Normal(f64),
    Turns { base: f64, count: usize },
}

impl Values {
    /// The values of one tensor with PyTorch's meaning of each initialiser: fans are counted from a shape
    /// `[out, in, ..]`, whose further axes multiply both. Those that need fans fail for fewer than two axes.
    pub fn new(init: &Init, seed: u64, name: &str, shape: &[usize]) -> Result<Self> {
        let gain = |slope: f64| (2.0 / (1.0 + slope * slope)).sqrt();
        let how = match *init {
            Init::Constant(value) => How::Constant(value as f32),
            Init::Uniform(low, high) => How::Uniform(low, high),
            Init::Normal(deviation) => How::Normal(deviation),
            Init::KaimingUniform { a } => symmetric(gain(a) * (3.0 / fans(name, shape)?.0).sqrt()),
            Init::KaimingNormal => How::Normal(gain(0.0) / fans(name, shape)?.0.sqrt()),
            Init::XavierUniform => {
                let (fan_in, fan_out) = fans(name, shape)?;
                symmetric((6.0 / (fan_in + fan_out)).sqrt())
            }
            Init::XavierNormal => {
                let (fan_in, fan_out) = fans(name, shape)?;
                How::Normal((2.0 / (fan_in + fan_out)).sqrt())
            }
            Init::Turns { base } => How::Turns { base, count: shape.last().copied().unwrap_or(1).max(1) },
        };
        Ok(Self { stream: Stream::named(seed, name), how })
    }

    /// The value of one element, counted in the order of memory.
    pub fn at(&self, element: usize) -> f32 {
        match self.how {
            How::Constant(value) => value,
            How::Uniform(low, high) => (low + (high - low) * self.stream.uniform(element as u64)) as f32,
            How::Normal(deviation) => (deviation * self.stream.normal(element as u64)) as f32,
            How::Turns { base, count } => {
                let turns = base.powf(-((element % count) as f64) / count as f64) / std::f64::consts::TAU;
                part_of(turns, element / count) as f32
            }
        }
    }

    /// Fills in the elements from `first` on, on several threads if there are many.
    pub fn fill(&self, first: usize, into: &mut [f32]) {
        let fill = |first: usize, part: &mut [f32]| {
            for (i, value) in part.iter_mut().enumerate() {
                *value = self.at(first + i);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(into.len().div_ceil(PART));
        if threads <= 1 || matches!(self.how, How::Constant(_)) {
            return fill(first, into);
        }
        let part = into.len().div_ceil(threads);
        std::thread::scope(|scope| {
            for (index, part_of) in into.chunks_mut(part).enumerate() {
                scope.spawn(move || fill(first + index * part, part_of));
            }
        });
    }
}

/// The k-th of four parts: three of 7 bits, then what is left.
fn part_of(x: f64, k: usize) -> f64 {
    // Six bits behind the leading one.
    let leading = |x: f64| f64::from_bits(x.to_bits() & !((1 << 46) - 1));
    let rest = (0..k.min(3)).fold(x, |rest, _| rest - leading(rest));
    if k < 3 { leading(rest) } else { rest }
}

fn symmetric(bound: f64) -> How {
    How::Uniform(-bound, bound)
}

fn fans(name: &str, shape: &[usize]) -> Result<(f64, f64)> {
    let [out, input, rest @ ..] = shape else {
        return Err(Error::Mismatch {
            name: name.to_string(),
            expected: "a shape [out, in, ..] for an initialiser that counts fans".to_string(),
            found: format!("{shape:?}"),
        });
    };
    let field: f64 = rest.iter().map(|&size| size as f64).product();
    Ok((*input as f64 * field, *out as f64 * field))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn values(init: Init, name: &str, shape: &[usize]) -> Vec<f32> {
        let mut values = vec![f32::NAN; shape.iter().product()];
        Values::new(&init, 42, name, shape).unwrap().fill(0, &mut values);
        values
    }

    #[test]
    fn turns_are_whole_in_four_parts_and_multiples_of_the_first_three_are_exact() {
        let values = values(Init::Turns { base: 1e5 }, "rope", &[4, 32]);
        for k in 0..32 {
            let exact = 1e5f64.powf(-(k as f64) / 32.0) / std::f64::consts::TAU;
            let parts = [0, 1, 2, 3].map(|part| values[part * 32 + k]);
            let sum: f64 = parts.iter().map(|part| f64::from(*part)).sum();
            assert!((sum - exact).abs() < exact * 1e-12, "{k}: {sum} for {exact}");
            for part in &parts[..3] {
                for position in [30_000u32, 131_071] {
                    let product = *part * position as f32;
                    assert_eq!(f64::from(product), f64::from(*part) * f64::from(position));
                }
            }
        }
    }

    /// Mean and standard deviation.
    fn moments(values: &[f32]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let square = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
        (mean, square.sqrt())
    }

    #[test]
    fn the_same_seed_and_name_give_the_same_values_for_ever() {
        let uniform = values(Init::Uniform(-1.0, 3.0), "fc1.weight", &[5]);
        let normal = values(Init::Normal(2.0), "fc1.weight", &[5]);
        assert_eq!(uniform, UNIFORM);
        assert_eq!(normal, NORMAL);
        assert_eq!(values(Init::Constant(0.1), "x", &[3]), [0.1; 3]);
        let other = |seed, name| Values::new(&Init::Normal(2.0), seed, name, &[5]).unwrap().at(0);
        assert_eq!(other(42, "fc1.weight"), NORMAL[0]);
        assert_ne!(other(43, "fc1.weight"), NORMAL[0]);
        assert_ne!(other(42, "fc2.weight"), NORMAL[0]);
    }

    #[test]
    fn parts_are_those_of_the_whole() {
        let shape = [3 * PART + 17, 1];
        let all = values(Init::KaimingNormal, "w", &shape);
        let one = Values::new(&Init::KaimingNormal, 42, "w", &shape).unwrap();
        for first in [0, 1, PART - 1, PART, 2 * PART + 5, all.len() - 100] {
            let mut part = vec![0.0; 100];
            one.fill(first, &mut part);
            assert_eq!(part, all[first..first + 100]);
        }
        assert!(all.iter().all(|value| value.is_finite()));
    }

    #[test]
    fn distributions_have_their_moments_and_bounds() {
        let n = 200_000;
        let uniform = values(Init::Uniform(-1.0, 3.0), "u", &[n]);
        let (mean, deviation) = moments(&uniform);
        assert!((mean - 1.0).abs() < 0.015 && (deviation - 4.0 / 12f64.sqrt()).abs() < 0.01, "{mean} {deviation}");
        assert!(uniform.iter().all(|v| (-1.0..3.0).contains(v)));
        let (low, high) = uniform.iter().fold((9f32, -9f32), |(a, b), &v| (a.min(v), b.max(v)));
        assert!(low < -0.999 && high > 2.999);

        let normal = values(Init::Normal(1.0), "n", &[n]);
        let (mean, deviation) = moments(&normal);
        assert!(mean.abs() < 0.012 && (deviation - 1.0).abs() < 0.008, "{mean} {deviation}");
        let share = |limit: f32| normal.iter().filter(|v| v.abs() > limit).count() as f64 / n as f64;
        assert!((share(1.0) - 0.31731).abs() < 0.005 && (share(2.0) - 0.0455).abs() < 0.0025);
        assert!((share(3.0) - 0.0027).abs() < 0.0006);
        // Neighbours, and the same elements of two tensors, are not correlated.
        let product = |other: &[f32]| {
            normal.iter().zip(other).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>() / n as f64
        };
        assert!(product(&normal[1..]).abs() < 0.012);
        assert!(product(&values(Init::Normal(1.0), "m", &[n])).abs() < 0.012);
    }

    #[test]
    fn fans_are_counted_as_pytorch_counts_them() {
        // Bound or deviation for [out 64, in 96, 3, 3]: fan-in 864, fan-out 576.
        let shape = [64, 96, 3, 3];
        let check_uniform = |init, bound: f64| {
            let values = values(init, "w", &shape);
            let most = values.iter().fold(0f32, |most, v| most.max(v.abs()));
            assert!(f64::from(most) <= bound * 1.000_001 && f64::from(most) > bound * 0.999, "{most} of {bound}");
        };
        let check_normal = |init, want: f64| {
            let (mean, deviation) = moments(&values(init, "w", &shape));
            assert!((deviation / want - 1.0).abs() < 0.012 && mean.abs() < want * 0.02, "{deviation} of {want}");
        };
        check_uniform(Init::KaimingUniform { a: 5f64.sqrt() }, 1.0 / 864f64.sqrt());
        check_uniform(Init::KaimingUniform { a: 0.0 }, (6.0 / 864f64).sqrt());
        check_normal(Init::KaimingNormal, (2.0 / 864f64).sqrt());
        check_uniform(Init::XavierUniform, (6.0 / 1440f64).sqrt());
        check_normal(Init::XavierNormal, (2.0 / 1440f64).sqrt());
        let error = Values::new(&Init::XavierNormal, 0, "fc.bias", &[7]).unwrap_err().to_string();
        assert!(error.contains("`fc.bias`") && error.contains("[7]"), "{error}");
    }

    const UNIFORM: [f32; 5] = [2.3274846, 2.7904685, 0.009046793, 2.0039043, 1.0651581];
    const NORMAL: [f32; 5] = [-0.7022946, 0.26524997, 3.303285, 0.90491027, 1.8428562];
}
