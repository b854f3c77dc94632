//! The models that can be shown.

use meganeura::{Error, Picture, Schedule, model};

model! {
    /// Normalise, widen with a gate, come back, add.
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

    /// A deep pre-norm classifier: what the residual stream of a language model looks like.
    pub model PreNormMlp<dim = 256, ffn = 512, depth = 8, classes = 10, batch in 1..=4096> {
        embed: Linear<64, dim>,
        blocks: [Block<dim, ffn>; depth],
        norm: RmsNorm<dim>,
        head: Linear<dim, classes>,

        /// Class scores.
        pub fn logits(x: f32[batch, 64]) -> f32[batch, classes] {
            let mut h = embed(x);
            for block in blocks { h = block(h); }
            head(norm(h))
        }

        /// The loss.
        #[train]
        pub fn loss(x: f32[batch, 64], label: u32[batch]) -> f32 {
            cross_entropy(logits(x), label)
        }
    }

    /// 784 → 128 → 10 classifier.
    pub model Mlp<hidden = 128, batch in 1..=256> {
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

model! {
    /// Normalise, widen, come back, add: with LayerNorm, biases and GELU.
    layer Feed<dim, ffn> {
        norm: LayerNorm<dim>,
        up:   Linear<dim, ffn>,
        down: Linear<ffn, dim>,

        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            x + down(gelu(up(norm(x))))
        }
    }

    /// A deep regression on sequences of vectors.
    pub model Encoder<dim = 96, ffn = 192, depth = 4, batch in 1..=64> {
        layers: [Feed<dim, ffn>; depth],
        head: Linear<dim, 1, bias = false>,

        /// One number for each sequence of 16 vectors.
        pub fn predict(x: f32[batch, 16, dim]) -> f32[batch] {
            let mut h = x;
            for layer in layers { h = layer(h); }
            reshape(mean(head(h), axis = 1), [batch])
        }

        /// The mean of squared differences.
        #[train]
        pub fn loss(x: f32[batch, 16, dim], y: f32[batch]) -> f32 {
            mse(predict(x), y)
        }
    }
}

/// One schedule as text and as a picture.
pub struct Shown {
    /// Which one, at which dimensions.
    pub title: String,
    /// Its table.
    pub table: String,
    /// The same drawn.
    pub picture: Picture,
    /// Why it is what it is.
    pub explanation: &'static str,
}

/// Makes the tables of one model.
type Show = fn() -> Result<Vec<Shown>, Error>;

/// By name.
pub const ALL: &[(&str, Show)] = &[("pre_norm_mlp", pre_norm_mlp), ("mlp", mlp), ("encoder", encoder)];

fn pre_norm_mlp() -> Result<Vec<Shown>, Error> {
    Ok(vec![
        shown("logits", &PreNormMlp::schedule_logits()?, 128, PreNormMlp::explain_logits())?,
        shown(
            "training step of loss, without the update",
            &PreNormMlpTrainer::schedule_loss()?,
            128,
            PreNormMlpTrainer::explain_loss(),
        )?,
    ])
}

fn mlp() -> Result<Vec<Shown>, Error> {
    Ok(vec![
        shown("logits", &Mlp::schedule_logits()?, 64, Mlp::explain_logits())?,
        shown(
            "training step of loss, without the update",
            &MlpTrainer::schedule_loss()?,
            64,
            MlpTrainer::explain_loss(),
        )?,
    ])
}

fn encoder() -> Result<Vec<Shown>, Error> {
    Ok(vec![
        shown("predict", &Encoder::schedule_predict()?, 8, Encoder::explain_predict())?,
        shown(
            "training step of loss, without the update",
            &EncoderTrainer::schedule_loss()?,
            8,
            EncoderTrainer::explain_loss(),
        )?,
    ])
}

fn shown(what: &str, schedule: &Schedule, batch: i64, explanation: &'static str) -> Result<Shown, Error> {
    let title = format!("{what} at batch {batch}");
    let picture = schedule.picture(&title, &[batch])?;
    Ok(Shown { title, table: schedule.at(&[batch])?, picture, explanation })
}
