//! A model from its text to trained parameters, through the public interface, against f64 written out by hand.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use meganeura::{Adam, AdamW, Error, Sgd, model};
use meganeura_runtime::testing::devices;

model! {
    /// 7 → 5 → 3.
    pub model Net<hidden = 5, batch in 1..=9> {
        fc1: Linear<7, hidden>,
        fc2: Linear<hidden, 3>,

        /// Class scores.
        pub fn logits(x: f32[batch, 7]) -> f32[batch, 3] {
            fc2(relu(fc1(x)))
        }

        /// Their loss.
        #[train]
        pub fn loss(x: f32[batch, 7], label: u32[batch]) -> f32 {
            cross_entropy(logits(x), label)
        }
    }

    layer Block<dim, ffn> {
        norm: RmsNorm<dim>,
        gate: Linear<dim, ffn, bias = false>,
        up:   Linear<dim, ffn, bias = false>,
        down: Linear<ffn, dim, bias = false>,

        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            let h = norm(x);
            x + down(silu(gate(h)) * up(h))
        }
    }

    /// A residual stream with a loop over layers.
    pub model Deep<dim = 12, depth = 3, batch in 1..=9> {
        blocks: [Block<dim, 20>; depth],
        norm: LayerNorm<dim>,
        head: Linear<dim, 3>,

        /// Class scores.
        pub fn logits(x: f32[batch, dim]) -> f32[batch, 3] {
            let mut h = x;
            for block in blocks { h = block(h); }
            head(norm(h))
        }

        /// Their loss.
        #[train]
        pub fn loss(x: f32[batch, dim], label: u32[batch]) -> f32 {
            cross_entropy(logits(x), label)
        }
    }

    /// Looks at eight rows only.
    pub model Window<n in 1..=16> {
        head: Linear<4, 2>,

        /// Scores of the first eight.
        pub fn first(x: f32[n, 4]) -> f32[8, 2] {
            head(x[0..8])
        }

        /// The mean of their squares and the sum of the last row.
        #[train]
        pub fn loss(x: f32[n, 4]) -> f32 {
            mean(first(x) * first(x)) + sum(x[n - 1])
        }
    }

    /// Frozen where it says so.
    pub model Half<batch in 1..=4> {
        #[frozen] base: Linear<4, 4>,
        head: Linear<4, 2>,

        /// The mean of squares.
        #[train]
        pub fn loss(x: f32[batch, 4]) -> f32 {
            mean(head(base(x)) * head(base(x)))
        }
    }
}

fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|k| ((k * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

/// Loss and gradients of `Net` in f64: weights of fc1, fc2 and biases in the order of the model.
fn by_hand(parameters: &[Vec<f64>; 4], x: &[f32], label: &[u32]) -> (f64, [Vec<f64>; 4]) {
    let [w1, b1, w2, b2] = parameters;
    let mut gradients = [vec![0.0; 35], vec![0.0; 5], vec![0.0; 15], vec![0.0; 3]];
    let (mut loss, rows) = (0.0, label.len());
    for (x, label) in x.chunks(7).zip(label) {
        let x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        let pre: Vec<f64> = (0..5).map(|o| b1[o] + (0..7).map(|i| w1[o * 7 + i] * x[i]).sum::<f64>()).collect();
        let h: Vec<f64> = pre.iter().map(|x| x.max(0.0)).collect();
        let z: Vec<f64> = (0..3).map(|o| b2[o] + (0..5).map(|i| w2[o * 5 + i] * h[i]).sum::<f64>()).collect();
        let sum: f64 = z.iter().map(|z| z.exp()).sum();
        loss += (sum.ln() - z[*label as usize]) / rows as f64;
        let dz: Vec<f64> =
            (0..3).map(|o| (z[o].exp() / sum - f64::from(u8::from(o == *label as usize))) / rows as f64).collect();
        for o in 0..3 {
            gradients[3][o] += dz[o];
            (0..5).for_each(|i| gradients[2][o * 5 + i] += dz[o] * h[i]);
        }
        for i in (0..5).filter(|i| pre[*i] > 0.0) {
            let dh: f64 = (0..3).map(|o| dz[o] * w2[o * 5 + i]).sum();
            gradients[1][i] += dh;
            (0..7).for_each(|k| gradients[0][i * 7 + k] += dh * x[k]);
        }
    }
    (loss, gradients)
}

const NAMES: [&str; 4] = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"];

/// The parameters as they are saved.
fn parameters(model: &Net) -> [Vec<f64>; 4] {
    let file = std::env::temp_dir().join(format!(
        "meganeura-{}-{:?}.safetensors",
        std::process::id(),
        std::thread::current().id()
    ));
    model.save(&file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let (header, data) = (std::str::from_utf8(&bytes[8..8 + header]).unwrap().to_string(), &bytes[8 + header..]);
    NAMES.map(|name| {
        let (_, rest) = header.split_once(&format!("\"{name}\"")).unwrap();
        let (_, rest) = rest.split_once("\"data_offsets\":[").unwrap();
        let (range, _) = rest.split_once(']').unwrap();
        let (from, to) = range.split_once(',').unwrap();
        let floats = data[from.parse().unwrap()..to.parse().unwrap()].chunks_exact(4);
        floats.map(|float| f64::from(f32::from_le_bytes(float.try_into().unwrap()))).collect()
    })
}

fn assert_near(what: &str, found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        let near = (f64::from(*found) - expected).abs() <= tolerance * expected.abs().max(1.0);
        assert!(near, "{what} [{k}]: expected {expected}, found {found}");
    }
}

#[test]
fn loss_and_gradients_are_those_written_by_hand() {
    for device in devices() {
        for rows in [1, 2, 9] {
            let model = Net::with_seed(&device, rows as u64).unwrap();
            let before = parameters(&model);
            assert!(before[0].iter().any(|w| *w != 0.0));
            let (x, label) = (values(rows * 7, rows), (0..rows as u32).map(|k| k * 2 % 3).collect::<Vec<_>>());
            let (loss, expected) = by_hand(&before, &x, &label);
            let mut trainer = model.trainer(Sgd::new(0.5)).unwrap();
            let found = trainer.gradients(&x, &label).unwrap();
            assert_near("loss", &[found.loss()], &[loss], 1e-5);
            for (name, expected) in NAMES.iter().zip(&expected) {
                assert_near(name, found.get(name).unwrap(), expected, 1e-5);
            }
            // Asking for gradients changes nothing; a step takes them away.
            assert_eq!(parameters(trainer.model()), before);
            assert_near("loss of the step", &[trainer.step(&x, &label).unwrap().get().unwrap()], &[loss], 1e-5);
            let after = parameters(trainer.model());
            for k in 0..4 {
                let moved: Vec<f64> = before[k].iter().zip(&expected[k]).map(|(p, g)| p - 0.5 * g).collect();
                assert_near(NAMES[k], &after[k].iter().map(|p| *p as f32).collect::<Vec<_>>(), &moved, 1e-5);
            }
        }
    }
}

#[test]
fn adam_and_adamw_take_the_steps_of_their_papers() {
    for device in devices() {
        let (x, label) = (values(28, 3), vec![0, 2, 1, 1]);
        for (decoupled, decay) in [(false, 0.0), (true, 0.1)] {
            let model = Net::with_seed(&device, 5).unwrap();
            let mut p = parameters(&model);
            let (mut m, mut v) = (p.clone().map(|p| vec![0.0; p.len()]), p.clone().map(|p| vec![0.0; p.len()]));
            let optimizer: meganeura::Optimizer =
                if decoupled { AdamW::new(0.01).decay(decay).into() } else { Adam::new(0.01).into() };
            let mut trainer = model.trainer(optimizer).unwrap();
            for step in 1..=4 {
                let (_, g) = by_hand(&p, &x, &label);
                for k in 0..4 {
                    for e in 0..p[k].len() {
                        m[k][e] = 0.9 * m[k][e] + 0.1 * g[k][e];
                        v[k][e] = 0.999 * v[k][e] + 0.001 * g[k][e] * g[k][e];
                        let (m, v) = (m[k][e] / (1.0 - 0.9f64.powi(step)), v[k][e] / (1.0 - 0.999f64.powi(step)));
                        p[k][e] -= 0.01 * decay * p[k][e];
                        p[k][e] -= 0.01 * m / (v.sqrt() + 1e-8);
                    }
                }
                trainer.step(&x, &label).unwrap();
            }
            let found = parameters(trainer.model());
            for k in 0..4 {
                assert_near(NAMES[k], &found[k].iter().map(|p| *p as f32).collect::<Vec<_>>(), &p[k], 2e-4);
            }
        }
    }
}

#[test]
fn a_saved_model_loads_with_the_same_scores() {
    for device in devices() {
        let mut model = Deep::with_seed(&device, 11).unwrap();
        let x = values(24, 1);
        let scores = model.logits(&x).unwrap();
        assert_eq!(scores.shape(), [2, 3]);
        let scores = scores.to_vec().unwrap();
        assert!(scores.iter().all(|s| s.is_finite() && *s != 0.0), "{scores:?}");
        let file = std::env::temp_dir().join(format!("meganeura-deep-{}.safetensors", std::process::id()));
        model.save(&file).unwrap();
        let mut again = Deep::load(&device, &file).unwrap();
        assert_eq!(again.logits(&x).unwrap().to_vec().unwrap(), scores);
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(Deep::load(&device, &bytes).unwrap().logits(&x).unwrap().to_vec().unwrap(), scores);
        assert_ne!(Deep::with_seed(&device, 12).unwrap().logits(&x).unwrap().to_vec().unwrap(), scores);
        // Another model's file is refused as a whole, and everything that is wrong is said.
        let Err(error) = Net::load(&device, &bytes) else { panic!("the weights of another model") };
        let text = error.to_string();
        assert!(text.contains("fc1.weight") && text.contains("blocks.2.gate.weight"), "{text}");
    }
}

#[test]
fn a_deep_model_learns_what_it_is_shown() {
    for device in devices() {
        let (x, label) = (values(9 * 12, 2), vec![0, 1, 2, 0, 1, 2, 2, 1, 0]);
        let mut trainer = Deep::with_seed(&device, 1).unwrap().trainer(AdamW::new(0.01)).unwrap();
        let first = trainer.step(&x, &label).unwrap().get().unwrap();
        for _ in 0..60 {
            trainer.step(&x, &label).unwrap();
        }
        let last = trainer.step(&x, &label).unwrap().get().unwrap();
        assert!(first > 0.7 && last < 0.1 * first, "{first} to {last}");
        let scores = trainer.into_model().logits(&x).unwrap().to_vec().unwrap();
        let best =
            scores.chunks(3).map(|row| (0..3).fold(0, |best, k| if row[k] > row[best] { k } else { best }) as u32);
        assert_eq!(best.collect::<Vec<_>>(), label);
    }
}

#[test]
fn frozen_layers_stay_and_have_no_gradient() {
    for device in devices() {
        let x = values(12, 4);
        let mut trainer = Half::new(&device).unwrap().trainer(AdamW::new(0.1)).unwrap();
        let gradients = trainer.gradients(&x).unwrap();
        assert!(gradients.get("base.weight").is_none() && gradients.get("head.weight").is_some());
        assert!(gradients.get("head.weight").unwrap().iter().any(|g| g.abs() > 1e-4));
        let trained: Vec<&str> = Half::PARAMETERS.iter().filter(|p| p.trained).map(|p| p.name).collect();
        assert_eq!(trained, ["head.weight", "head.bias"]);
    }
}

#[test]
fn what_does_not_fit_is_an_error_that_names_it_and_changes_nothing() {
    for device in devices() {
        let mut trainer = Net::new(&device).unwrap().trainer(Sgd::new(0.1)).unwrap();
        let before = parameters(trainer.model());
        let text = |error: Error| error.to_string();
        let say = |result: Result<meganeura::Loss, Error>| result.map(|_| ()).map_err(text).unwrap_err();
        let message = say(trainer.step(&values(15, 0), &[0, 1]));
        assert!(message.contains('x') && message.contains("15"), "{message}");
        let message = say(trainer.step(&values(70, 0), &vec![0; 10]));
        assert!(message.contains("batch") && message.contains('9') && message.contains("10"), "{message}");
        let message = say(trainer.step(&values(14, 0), &[0, 3]));
        assert!(message.contains("label") && message.contains('3') && message.contains("index 1"), "{message}");
        let message = say(trainer.step(&[] as &[f32], &[] as &[u32]));
        assert!(message.contains("batch") && message.contains('0'), "{message}");
        let message = Net::new(&device).unwrap().trainer(Sgd::new(-1.0)).map(|_| ()).map_err(text).unwrap_err();
        assert!(message.contains("lr") && message.contains("-1"), "{message}");
        assert_eq!(parameters(trainer.model()), before);
        trainer.step(&values(14, 0), &[0, 2]).unwrap();
        assert_ne!(parameters(trainer.model()), before);
    }
}

#[test]
fn a_result_is_an_argument_without_a_copy_and_arrays_are_shapes() {
    for device in devices() {
        let mut model = Net::new(&device).unwrap();
        let rows = [[0.5f32, -1.0, 0.25, 0.0, 2.0, -0.125, 1.0], [1.0, 1.0, -1.0, 0.5, 0.0, 0.75, -2.0]];
        let flat: Vec<f32> = rows.concat();
        let expected = model.logits(&flat).unwrap().to_vec().unwrap();
        assert_eq!(model.logits(&rows).unwrap().to_vec().unwrap(), expected);
        assert_eq!(model.logits((&flat, [2, 7])).unwrap().to_vec().unwrap(), expected);
        let on_device = meganeura::Tensor::new(&device, &flat, &[2, 7]).unwrap();
        assert_eq!(model.logits(&on_device).unwrap().to_vec().unwrap(), expected);
        let mut loss = model.loss(&on_device, &[0, 1]).unwrap().to_vec().unwrap();
        assert!(loss.pop().is_some_and(f32::is_finite) && loss.is_empty());
    }
}

#[test]
fn a_slice_beyond_the_rows_of_a_call_is_an_error_that_names_it_and_changes_nothing() {
    let schedule = Window::schedule_first().unwrap();
    assert!(schedule.to_string().contains("x[0..8] needs 8 <= n"), "{schedule}");
    let expected = "`x[0..8]`: expected 8 <= n, found n = ";
    assert_eq!(schedule.at(&[7]).unwrap_err().to_string(), format!("{expected}7"));
    assert!(schedule.at(&[8]).is_ok());
    for device in devices() {
        let mut model = Window::new(&device).unwrap();
        for rows in [1, 7] {
            let message = model.first(&values(rows * 4, 1)).map(|_| ()).unwrap_err().to_string();
            assert_eq!(message, format!("{expected}{rows}"));
        }
        let x = values(64, 1);
        let whole = model.first(&x).unwrap().to_vec().unwrap();
        assert_eq!(model.first(&x[..32]).unwrap().to_vec().unwrap(), whole);
        assert!(whole.iter().all(|score| *score != 0.0));
        let mut trainer = model.trainer(Sgd::new(0.1)).unwrap();
        let message = trainer.step(&x[..28]).map(|_| ()).unwrap_err().to_string();
        assert_eq!(message, format!("{expected}7"));
        let message = trainer.gradients(&x[..4]).map(|_| ()).unwrap_err().to_string();
        assert_eq!(message, format!("{expected}1"));
        trainer.step(&x[..32]).unwrap();
        assert_ne!(trainer.into_model().first(&x).unwrap().to_vec().unwrap(), whole);
    }
}
