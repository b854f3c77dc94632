//! Attention and rotary positions against formulas in f64, on every device: values, and derivatives as slopes.
#![allow(clippy::unwrap_used, clippy::panic)]

use meganeura::{Sgd, model};
use meganeura_runtime::testing::devices;

model! {
    /// Six heads of queries, three of keys and values, whose widths differ.
    model Heads<rows in 1..=40, keys in 1..=70> {
        pub fn plain(q: f32[2, rows, 6, 5], k: f32[2, keys, 3, 5], v: f32[2, keys, 3, 7]) -> f32[2, rows, 6, 7] {
            attention(q, k, v)
        }
        pub fn causal(q: f32[2, rows, 6, 5], k: f32[2, keys, 3, 5], v: f32[2, keys, 3, 7]) -> f32[2, rows, 6, 7] {
            attention(q, k, v, causal = true, scale = 0.7)
        }
        pub fn near(q: f32[2, rows, 6, 5], k: f32[2, keys, 3, 5], v: f32[2, keys, 3, 7]) -> f32[2, rows, 6, 7] {
            attention(q, k, v, window = 3)
        }
        pub fn past(q: f32[2, rows, 6, 5], k: f32[2, keys, 3, 5], v: f32[2, keys, 3, 7]) -> f32[2, rows, 6, 7] {
            attention(q, k, v, causal = true, window = 3)
        }
        pub fn chosen(
            q: f32[2, rows, 6, 5], k: f32[2, keys, 3, 5], v: f32[2, keys, 3, 7], mask: bool[2, 1, rows, keys]
        ) -> f32[2, rows, 6, 7] {
            attention(q, k, v, mask = mask)
        }
        pub fn biased(
            q: f32[2, rows, 6, 5], k: f32[2, keys, 3, 5], v: f32[2, keys, 3, 7], mask: f32[6, rows, keys]
        ) -> f32[2, rows, 6, 7] {
            attention(q, k, v, mask = mask)
        }
    }

    /// One head without an axis for it.
    model Flat<rows in 1..=40, keys in 1..=70> {
        pub fn run(q: f32[rows, 5], k: f32[keys, 5], v: f32[keys, 7], mask: bool[rows, keys]) -> f32[rows, 7] {
            attention(q, k, v, mask = mask)
        }
    }

    /// Gradients of all three.
    model Trained {
        param dq: f32[4, 4, 2] = zeros;
        param dk: f32[6, 2, 2] = zeros;
        param dv: f32[6, 2, 3] = zeros;

        #[train]
        pub fn loss(q: f32[4, 4, 2], k: f32[6, 2, 2], v: f32[6, 2, 3], weight: f32[4, 4, 3]) -> f32 {
            1.5 * sum(attention(2 * (q + dq), k + dk, v + dv, causal = true, window = 4) * weight)
        }
    }

    /// Both conventions, a part of a head, any positions.
    model Turns<rows in 1..=9> {
        pub fn halves(x: f32[rows, 3, 8], pos: u32 in 0..40000) -> f32[rows, 3, 8] { rope(x, pos) }
        pub fn paired(x: f32[rows, 3, 8], pos: u32) -> f32[rows, 3, 8] {
            rope(x, pos, theta = 100000, interleaved = true)
        }
        pub fn part(x: f32[2, rows, 3, 8], at: u32[2, rows]) -> f32[2, rows, 3, 8] { rope(x, at, theta = 500, dims = 6) }
        pub fn flat(x: f32[rows, 8]) -> f32[rows, 8] { rope(x, 17) }
    }

    /// The derivative of a turn.
    model Turned {
        param dx: f32[3, 2, 6] = zeros;

        #[train]
        pub fn loss(x: f32[3, 2, 6], weight: f32[3, 2, 6]) -> f32 {
            sum(rope(3 * (x + dx), 5, theta = 7, dims = 4) * weight)
        }
    }
}

fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|k| ((k * 7919 + seed * 104_729 + k * k * 31) % 2003) as f32 / 1001.5 - 1.0).collect()
}

fn close(found: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f64::from(*found) - expected).abs() < tolerance,
            "{what}: element {k} is {found}, expected {expected}"
        );
    }
}

/// Sizes of queries `[batch, rows, heads, width]`, keys and values.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    rows: usize,
    keys: usize,
    heads: usize,
    shared: usize,
    width: usize,
    out: usize,
}

/// Attention as its definition says; `score` changes the score of (batch, head, row, key), or forbids it.
fn attend(
    sizes: Sizes,
    [q, k, v]: [&[f64]; 3],
    scale: f64,
    score: impl Fn([usize; 4], f64) -> Option<f64>,
) -> Vec<f64> {
    let Sizes { batch, rows, keys, heads, shared, width, out } = sizes;
    let mut result = vec![0.0; batch * rows * heads * out];
    for b in 0..batch {
        for (i, h) in (0..rows).flat_map(|i| (0..heads).map(move |h| (i, h))) {
            let of = h / (heads / shared);
            let query = &q[((b * rows + i) * heads + h) * width..][..width];
            let weight = |j: usize| {
                let key = &k[((b * keys + j) * shared + of) * width..][..width];
                let dot: f64 = query.iter().zip(key).map(|(q, k)| q * k).sum();
                score([b, h, i, j], dot * scale).map_or(0.0, f64::exp)
            };
            let weights: Vec<f64> = (0..keys).map(weight).collect();
            let sum: f64 = weights.iter().sum();
            for o in 0..out {
                let mixed = (0..keys).map(|j| weights[j] * v[((b * keys + j) * shared + of) * out + o]).sum::<f64>();
                result[((b * rows + i) * heads + h) * out + o] = if sum == 0.0 { 0.0 } else { mixed / sum };
            }
        }
    }
    result
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|x| f64::from(*x)).collect()
}

#[test]
fn attention_is_its_definition_at_any_sizes() {
    for device in devices() {
        let mut model = Heads::new(&device).unwrap();
        for (rows, keys) in [(1, 1), (1, 67), (5, 5), (3, 8), (33, 65), (7, 4)] {
            let sizes = Sizes { batch: 2, rows, keys, heads: 6, shared: 3, width: 5, out: 7 };
            let (q, k, v) = (values(2 * rows * 30, 1), values(2 * keys * 15, 2), values(2 * keys * 21, 3));
            let (wq, wk, wv) = (wide(&q), wide(&k), wide(&v));
            let inputs = [&wq[..], &wk[..], &wv[..]];
            let root = 1.0 / 5f64.sqrt();
            let what = |name: &str| format!("{name} at {rows} x {keys} on {device}");
            let read = |tensor: meganeura::Tensor<f32>| tensor.to_vec().unwrap();
            // The last query stands where the last key does.
            let at = move |i: usize| i as i64 + keys as i64 - rows as i64;

            let found = read(model.plain(&q, &k, &v).unwrap());
            close(&found, &attend(sizes, inputs, root, |_, s| Some(s)), 3e-6, &what("plain"));
            let found = read(model.causal(&q, &k, &v).unwrap());
            let seen = |[_, _, i, j]: [usize; 4], s: f64| (j as i64 <= at(i)).then_some(s);
            close(&found, &attend(sizes, inputs, 0.7, seen), 3e-6, &what("causal"));
            let found = read(model.near(&q, &k, &v).unwrap());
            let seen = |[_, _, i, j]: [usize; 4], s: f64| ((j as i64 - at(i)).abs() < 3).then_some(s);
            close(&found, &attend(sizes, inputs, root, seen), 3e-6, &what("near"));
            let found = read(model.past(&q, &k, &v).unwrap());
            let seen = |[_, _, i, j]: [usize; 4], s: f64| (j as i64 <= at(i) && j as i64 > at(i) - 3).then_some(s);
            close(&found, &attend(sizes, inputs, root, seen), 3e-6, &what("past"));

            // Row 0 of the second of the batch sees nothing.
            let mask: Vec<bool> =
                (0..2 * rows * keys).map(|k| k / keys != rows && (k * 5 + k / keys) % 3 != 1).collect();
            let found = read(model.chosen(&q, &k, &v, &mask).unwrap());
            let seen = |[b, _, i, j]: [usize; 4], s: f64| mask[(b * rows + i) * keys + j].then_some(s);
            close(&found, &attend(sizes, inputs, root, seen), 3e-6, &what("chosen"));
            assert!(found[rows * 42..][..42].iter().all(|x| *x == 0.0), "{}", what("chosen"));
            let mut bias = values(6 * rows * keys, 4);
            bias.iter_mut().step_by(4).for_each(|x| *x = f32::NEG_INFINITY);
            let found = read(model.biased(&q, &k, &v, &bias).unwrap());
            let seen = |[_, h, i, j]: [usize; 4], s: f64| {
                let bias = f64::from(bias[(h * rows + i) * keys + j]);
                bias.is_finite().then_some(s + bias)
            };
            close(&found, &attend(sizes, inputs, root, seen), 3e-6, &what("biased"));
        }
    }
}

#[test]
fn one_head_needs_no_axis() {
    let sizes = Sizes { batch: 1, rows: 3, keys: 11, heads: 1, shared: 1, width: 5, out: 7 };
    let (q, k, v) = (values(15, 1), values(55, 2), values(77, 3));
    let mask: Vec<bool> = (0..33).map(|k| k % 4 != 2).collect();
    let inputs = [&wide(&q)[..], &wide(&k)[..], &wide(&v)[..]];
    let expected = attend(sizes, inputs, 1.0 / 5f64.sqrt(), |[_, _, i, j], s| mask[i * 11 + j].then_some(s));
    for device in devices() {
        let found = Flat::new(&device).unwrap().run(&q, &k, &v, &mask).unwrap().to_vec().unwrap();
        close(&found, &expected, 3e-6, &device.to_string());
    }
}

/// The slope of a function along each of its arguments.
fn slopes(at: &[f64], of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let slope = |k: usize| {
        let moved = |by: f64| {
            let mut at = at.to_vec();
            at[k] += by;
            of(&at)
        };
        (moved(1e-5) - moved(-1e-5)) / 2e-5
    };
    (0..at.len()).map(slope).collect()
}

#[test]
fn gradients_of_attention_are_slopes() {
    let sizes = Sizes { batch: 1, rows: 4, keys: 6, heads: 4, shared: 2, width: 2, out: 3 };
    let (q, k, v, weight) = (values(32, 1), values(24, 2), values(36, 3), values(48, 4));
    let seen = |[_, _, i, j]: [usize; 4], s: f64| (j <= i + 2 && j + 4 > i + 2).then_some(s);
    let loss = |q: &[f64], k: &[f64], v: &[f64]| {
        let doubled: Vec<f64> = q.iter().map(|x| 2.0 * x).collect();
        let mixed = attend(sizes, [&doubled, k, v], 1.0 / 2f64.sqrt(), seen);
        1.5 * mixed.iter().zip(&weight).map(|(x, w)| x * f64::from(*w)).sum::<f64>()
    };
    let (wq, wk, wv) = (wide(&q), wide(&k), wide(&v));
    for device in devices() {
        let mut trainer = Trained::new(&device).unwrap().trainer(Sgd::new(0.1)).unwrap();
        let gradients = trainer.gradients(&q, &k, &v, &weight).unwrap();
        let of = |name: &str| gradients.get(name).unwrap().to_vec();
        close(&of("dq"), &slopes(&wq, |q| loss(q, &wk, &wv)), 2e-5, &format!("dq on {device}"));
        close(&of("dk"), &slopes(&wk, |k| loss(&wq, k, &wv)), 2e-5, &format!("dk on {device}"));
        close(&of("dv"), &slopes(&wv, |v| loss(&wq, &wk, v)), 2e-5, &format!("dv on {device}"));
    }
}

/// One row of a head, turned.
fn turned(x: &[f64], position: f64, theta: f64, dims: usize, interleaved: bool) -> Vec<f64> {
    let mut result = x.to_vec();
    for i in 0..dims / 2 {
        let angle = position * theta.powf(-2.0 * i as f64 / dims as f64);
        let (a, b) = if interleaved { (2 * i, 2 * i + 1) } else { (i, i + dims / 2) };
        result[a] = x[a] * angle.cos() - x[b] * angle.sin();
        result[b] = x[b] * angle.cos() + x[a] * angle.sin();
    }
    result
}

#[test]
fn rows_turn_by_their_position_also_far_from_the_first() {
    for device in devices() {
        let mut model = Turns::new(&device).unwrap();
        for (rows, first) in [(1, 0), (5, 0), (9, 3), (7, 30_000), (2, 39_999)] {
            let x = values(rows * 24, 5);
            let expected = |theta, interleaved| -> Vec<f64> {
                let row = |(k, x): (usize, &[f64])| turned(x, (first + k / 3) as f64, theta, 8, interleaved);
                wide(&x).chunks(8).enumerate().flat_map(row).collect()
            };
            let what = format!("{rows} from {first} on {device}");
            let found = model.halves(&x, first as u32).unwrap().to_vec().unwrap();
            close(&found, &expected(10_000.0, false), 3e-6, &what);
            let found = model.paired(&x, first as u32).unwrap().to_vec().unwrap();
            close(&found, &expected(100_000.0, true), 3e-6, &what);
        }
        let (x, at) = (values(2 * 4 * 24, 6), [5, 1, 131_000, 0, 7, 7, 30_011, 2]);
        let row = |(k, x): (usize, &[f64])| turned(x, f64::from(at[k / 3]), 500.0, 6, false);
        let expected: Vec<f64> = wide(&x).chunks(8).enumerate().flat_map(row).collect();
        close(&model.part(&x, &at).unwrap().to_vec().unwrap(), &expected, 3e-6, &format!("part on {device}"));
        let x = values(6 * 8, 7);
        let row = |(k, x): (usize, &[f64])| turned(x, 17.0 + k as f64, 10_000.0, 8, false);
        let expected: Vec<f64> = wide(&x).chunks(8).enumerate().flat_map(row).collect();
        close(&model.flat(&x).unwrap().to_vec().unwrap(), &expected, 3e-6, &format!("flat on {device}"));
    }
}

#[test]
fn gradients_of_a_turn_are_slopes() {
    let (x, weight) = (values(36, 1), values(36, 2));
    let loss = |x: &[f64]| -> f64 {
        let row = |(k, x): (usize, &[f64])| {
            let tripled: Vec<f64> = x.iter().map(|x| 3.0 * x).collect();
            turned(&tripled, 5.0 + (k / 2) as f64, 7.0, 4, false)
        };
        let turned: Vec<f64> = x.chunks(6).enumerate().flat_map(row).collect();
        turned.iter().zip(&weight).map(|(x, w)| x * f64::from(*w)).sum()
    };
    for device in devices() {
        let mut trainer = Turned::new(&device).unwrap().trainer(Sgd::new(0.1)).unwrap();
        let gradients = trainer.gradients(&x, &weight).unwrap();
        let found = gradients.get("dx").unwrap().to_vec();
        close(&found, &slopes(&wide(&x), loss), 1e-5, &device.to_string());
    }
}
