//! Trains a classifier of handwritten digits and says how good it is on digits that it has not seen.
//!
//! `cargo run --release --example digits` needs no download: the 1,797 pictures of 8×8 grey values lie in
//! `examples/data`. A part of a device's name picks the device: `cargo run --release --example digits -- llvmpipe`. It
//! writes the course of the loss to `target/digits_loss.png` and the model to
//! `target/digits.safetensors`, reads the model back and measures that one.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod data;
mod plot;

use std::error::Error;
use std::path::Path;

use data::Digits;
use indicatif::{ProgressBar, ProgressStyle};
use meganeura::{AdamW, DataLoader, Device, model};

model! {
    /// 64 → 128 → 10 classifier of 8×8 pictures.
    pub model Classifier<hidden = 128, batch in 1..=512> {
        fc1: Linear<64, hidden>,
        fc2: Linear<hidden, 10>,

        /// One row of class scores per picture.
        pub fn logits(x: f32[batch, 64]) -> f32[batch, 10] {
            fc2(relu(fc1(x)))
        }

        #[train]
        pub fn loss(x: f32[batch, 64], label: u32[batch]) -> f32 {
            cross_entropy(logits(x), label)
        }
    }
}

const EPOCHS: u64 = 40;
const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let device = match std::env::args().nth(1) {
        Some(name) => Device::named(&name)?,
        None => Device::open()?,
    };
    println!("device: {device}");
    let digits = Digits::read()?;
    println!("{} digits to learn from, {} to be asked", digits.train.labels.len(), digits.test.labels.len());

    let mut trainer = Classifier::new(&device)?.trainer(AdamW::new(2e-3))?;
    let loader = DataLoader::new((&digits.train.pixels, 64), &digits.train.labels).batch(BATCH).shuffle(0);
    let steps = EPOCHS * digits.train.labels.len().div_ceil(BATCH) as u64;
    let bar =
        ProgressBar::new(steps).with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} steps  loss {msg}")?);
    let mut losses = Vec::new();
    for epoch in 0..EPOCHS {
        for (x, label) in loader.epoch(epoch) {
            let loss = trainer.step(&x, &label)?.get()?;
            losses.push(loss);
            bar.set_message(format!("{loss:.4}"));
            bar.inc(1);
        }
    }
    bar.finish();

    let target = Path::new("target");
    std::fs::create_dir_all(target)?;
    plot::losses(&target.join("digits_loss.png"), &losses)?;
    println!("loss {:.4} -> {:.4}, drawn in target/digits_loss.png", losses[0], losses[losses.len() - 1]);

    let file = target.join("digits.safetensors");
    trainer.into_model().save(&file)?;
    let mut model = Classifier::load(&device, file.as_path())?;
    let scores = model.logits(&digits.test.pixels)?.to_vec()?;
    let best = |row: &[f32]| (0..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
    let answers = scores.chunks(10).map(best);
    let right = answers.zip(&digits.test.labels).filter(|(answer, label)| *answer == **label as usize).count();
    let asked = digits.test.labels.len();
    println!("test accuracy {:.4} ({right} of {asked})", right as f64 / asked as f64);
    Ok(())
}
