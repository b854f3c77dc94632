//! The classifier 784-128-10 at batch 64: the step that all peers are measured with.

use std::error::Error;
use std::time::Instant;

use meganeura::{AdamW, Device, model};

use crate::{Figure, milliseconds};

model! {
    /// 784 → 128 → 10 classifier.
    model Mlp<hidden = 128, batch in 1..=256> {
        fc1: Linear<784, hidden>,
        fc2: Linear<hidden, 10>,

        /// Class scores.
        pub fn logits(x: f32[batch, 784]) -> f32[batch, 10] {
            fc2(relu(fc1(x)))
        }

        /// The loss.
        #[train]
        pub fn loss(x: f32[batch, 784], label: u32[batch]) -> f32 {
            cross_entropy(logits(x), label)
        }
    }
}

const BATCH: usize = 64;
const STEPS: u32 = 1000;

/// Start-up, training steps and calls.
pub fn measure(device: &Device) -> Result<Vec<Figure>, Box<dyn Error>> {
    let x: Vec<f32> = (0..BATCH * 784).map(|k| ((k * 7919 % 1009) as f32 / 1009.0 - 0.5) * 2.0).collect();
    let label: Vec<u32> = (0..BATCH as u32).map(|k| k * 7 % 10).collect();

    let begun = Instant::now();
    let mut trainer = Mlp::new(device)?.trainer(AdamW::new(1e-3))?;
    let made = milliseconds(begun);
    let begun = Instant::now();
    let first = trainer.step(&x, &label)?.get()?;
    let first_step = milliseconds(begun);

    let begun = Instant::now();
    while milliseconds(begun) < 100.0 {
        trainer.step(&x, &label)?.get()?;
    }
    let begun = Instant::now();
    let mut last = trainer.step(&x, &label)?;
    for _ in 1..STEPS {
        last = trainer.step(&x, &label)?;
    }
    let last = last.get()?;
    let step = milliseconds(begun) / f64::from(STEPS);
    if !(last.is_finite() && last < first) {
        return Err(format!("the loss went from {first} to {last}").into());
    }

    let mut model = trainer.into_model();
    model.logits(&x)?.to_vec()?;
    let begun = Instant::now();
    for _ in 0..STEPS {
        model.logits(&x)?;
    }
    model.logits(&x)?.to_vec()?;
    let call = milliseconds(begun) / f64::from(STEPS);
    Ok(vec![
        Figure { name: "mlp_new", value: made, unit: "ms", how: "model and trainer, pipelines included" },
        Figure { name: "mlp_first_step", value: first_step, unit: "ms", how: "once" },
        Figure { name: "mlp_adamw_step", value: step, unit: "ms", how: "batch 64, mean of 1,000 steps, one wait" },
        Figure { name: "mlp_logits", value: call, unit: "ms", how: "batch 64, mean of 1,000 calls, one wait" },
    ])
}
