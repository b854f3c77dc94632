//! The products of one token of a 135-million-parameter language model, without its attention: 30 blocks of dependent
//! matrix-vector products, where what lies between launches counts as much as they do.

use std::error::Error;
use std::time::Instant;

use meganeura::{Device, model};

use crate::{Figure, milliseconds};

model! {
    /// The widths of a block of SmolLM2-135M.
    layer Block {
        mix_norm: RmsNorm<576>,
        queries: Linear<576, 576, bias = false>,
        keys: Linear<576, 192, bias = false>,
        values: Linear<576, 192, bias = false>,
        output: Linear<576, 576, bias = false>,
        norm: RmsNorm<576>,
        gate: Linear<576, 1536, bias = false>,
        up: Linear<576, 1536, bias = false>,
        down: Linear<1536, 576, bias = false>,

        fn forward(x: f32[.., 576]) -> f32[.., 576] {
            let h = mix_norm(x);
            // Stands for attention: whatever needs all three.
            let mixed = queries(h) * repeat(keys(h) * sigmoid(values(h)), 3, axis = -1);
            let y = x + output(mixed);
            let h = norm(y);
            y + down(silu(gate(h)) * up(h))
        }
    }

    /// Thirty blocks and the scores of all tokens.
    model Decode {
        blocks: [Block; 30],
        norm: RmsNorm<576>,
        head: Linear<576, 49152, bias = false>,

        /// Scores of the next token.
        pub fn scores(x: f32[1, 576]) -> f32[1, 49152] {
            let mut h = x;
            for block in blocks { h = block(h); }
            head(norm(h))
        }
    }
}

const CALLS: u32 = 40;

/// One token's worth.
pub fn measure(device: &Device) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut model = Decode::new(device)?;
    let x: Vec<f32> = (0..576).map(|k| (k * 37 % 101) as f32 / 50.5 - 1.0).collect();
    let mut best = f64::INFINITY;
    for _ in 0..CALLS {
        let begun = Instant::now();
        let scores = model.scores(&x)?.to_vec()?;
        best = best.min(milliseconds(begun));
        if !scores.iter().all(|score| score.is_finite()) {
            return Err("a score is not finite".into());
        }
    }
    Ok(vec![Figure {
        name: "decode_products",
        value: best,
        unit: "ms",
        how: "one token without attention, best of 40",
    }])
}
