//! A gated pre-norm MLP of several depths: what start-up and a training step cost as a model gets deeper.

use std::error::Error;
use std::time::Instant;

use meganeura::{AdamW, Device, model};

use crate::{Figure, milliseconds};

model! {
    /// One residual block.
    layer Block<dim, ffn> {
        norm: RmsNorm<dim>,
        gate: Linear<dim, ffn, bias = false>,
        up: Linear<dim, ffn, bias = false>,
        down: Linear<ffn, dim, bias = false>,

        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            let h = norm(x);
            x + down(silu(gate(h)) * up(h))
        }
    }

    /// Two blocks and a head.
    model Net<dim = 64, depth = 2, batch in 1..=256> {
        blocks: [Block<dim, 4 * dim>; depth],
        norm: RmsNorm<dim>,
        head: Linear<dim, 10>,

        /// Class scores.
        pub fn logits(x: f32[batch, dim]) -> f32[batch, 10] {
            let mut h = x;
            for block in blocks { h = block(h); }
            head(norm(h))
        }

        /// The loss.
        #[train]
        pub fn loss(x: f32[batch, dim], label: u32[batch]) -> f32 { cross_entropy(logits(x), label) }
    }

    /// Eight blocks.
    model Net8 = Net<depth = 8>;

    /// Thirty blocks.
    model Net30 = Net<depth = 30>;

    /// A hundred blocks.
    model Net100 = Net<depth = 100>;
}

/// Start-up, with the pipelines of a step, and steps.
macro_rules! measure {
    ($model:ident, $device:expr, $steps:expr, $new:literal, $step:literal) => {{
        let x: Vec<f32> = (0..64 * 64).map(|k| (k * 7919 % 1009) as f32 / 504.5 - 1.0).collect();
        let label: Vec<u32> = (0..64).map(|k| k * 7 % 10).collect();
        let begun = Instant::now();
        let mut trainer = $model::new($device)?.trainer(AdamW::new(1e-4))?;
        let made = milliseconds(begun);
        for _ in 0..3 {
            trainer.step(&x, &label)?.get()?;
        }
        let begun = Instant::now();
        let mut last = trainer.step(&x, &label)?;
        for _ in 1..$steps {
            last = trainer.step(&x, &label)?;
        }
        if !last.get()?.is_finite() {
            return Err(concat!($step, ": the loss is not finite").into());
        }
        let step = milliseconds(begun) / f64::from($steps);
        [
            Figure { name: $new, value: made, unit: "ms", how: "model, trainer and pipelines" },
            Figure { name: $step, value: step, unit: "ms", how: "width 64, ffn 256, batch 64, AdamW" },
        ]
    }};
}

/// All depths.
pub fn measure(device: &Device) -> Result<Vec<Figure>, Box<dyn Error>> {
    let figures = [
        measure!(Net, device, 200, "depth_2_new", "depth_2_step"),
        measure!(Net8, device, 100, "depth_8_new", "depth_8_step"),
        measure!(Net30, device, 50, "depth_30_new", "depth_30_step"),
        measure!(Net100, device, 20, "depth_100_new", "depth_100_step"),
    ];
    Ok(figures.into_iter().flatten().collect())
}
