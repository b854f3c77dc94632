//! Forms of the language through the public interface: bounded arguments, tuples, buffers, several losses, taps.
#![allow(clippy::unwrap_used)]

use meganeura::{Adam, Device, Error, Sgd, model};

model! {
    layer Centre<dim> {
        buffer mean: f32[dim] = zeros;
        param scale: f32[dim] = ones;

        fn forward(x: f32[n, dim]) -> f32[n, dim] {
            mean = 0.5 * mean + 0.5 * sum(x, axis = 0) / f32(n);
            tap(x - mean) * scale
        }
    }

    /// Two halves that are trained by a loss each.
    pub model Pair<dim = 3, batch in 1..=8> {
        gen: [Centre<dim>; 2],
        disc: Linear<dim, 1>,

        fn made(x: f32[batch, dim]) -> f32[batch, dim] {
            let mut y = x;
            for part in gen { y = part(y); }
            y
        }

        /// Both halves.
        pub fn score(x: f32[batch, dim]) -> (f32[batch, 1], u32) {
            (disc(made(x)), 7)
        }

        /// Trains the first.
        #[train(params = "gen.*")]
        pub fn fool(x: f32[batch, dim]) -> (f32, f32[batch]) {
            let s = disc(made(x));
            (mean(pow(s - 1, 2)), s[.., 0])
        }

        /// Trains the second.
        #[train(params = "disc.*")]
        pub fn judge(x: f32[batch, dim]) -> f32 {
            mean(pow(disc(x), 2))
        }
    }

    /// Keeps what it was given.
    pub model Memory<max = 6, seq in 1..=3> {
        state rows: f32[max, 2];
        param scale: f32[2] = ones;

        /// All rows so far.
        pub fn add(x: f32[seq, 2], pos: u32 in 0..max) -> f32[pos + seq, 2] {
            rows[pos..pos + seq] = x * scale;
            rows[..pos + seq]
        }

        /// One of them.
        pub fn row(at: u32 in 0..max) -> f32[2] {
            rows[at]
        }
    }

    /// Parts of a table that the call chooses.
    pub model Window<max = 10, seq in 1..=4> {
        param table: f32[max, 2] = normal(1.0);

        /// Rows from `pos` on, with one of them replaced.
        pub fn rows(x: f32[seq, 2], pos: u32 in 0..max) -> (f32[seq, 2], f32[max, 2]) {
            let mut t = table;
            t[pos..pos + seq] = x;
            let mut y = t[pos..pos + seq];
            for i in 0..2 { y[0, i] += f32(pos + i); }
            (y, t)
        }

        /// A square of several runtime dimensions.
        #[train]
        pub fn loss(ids: f32[seq, seq], pos: u32 in 0..max) -> f32 {
            mean(pow(ids @ table[pos..pos + seq], 2))
        }
    }
}

/// Every device of this machine, the CPU first.
fn devices() -> Vec<Device> {
    let names: Vec<String> = Device::list().into_iter().map(|info| info.name).collect();
    let others = names.iter().filter_map(|name| Device::named(name).ok());
    [Device::host()].into_iter().chain(others).collect()
}

fn close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    let fits = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()));
    assert!(fits, "{found:?} against {expected:?}");
}

const X: [[f32; 3]; 2] = [[1.0, -2.0, 0.5], [3.0, 0.0, -1.5]];

#[test]
fn bounded_arguments_choose_parts_and_are_checked() -> Result<(), Error> {
    devices().iter().try_for_each(bounded_on)
}

fn bounded_on(device: &Device) -> Result<(), Error> {
    let mut window = Window::new(device)?;
    let x = [[0.5f32, -1.0], [2.0, 3.0], [-4.0, 1.5]];
    for pos in [0u32, 3, 7] {
        let (y, table) = window.rows(&x, pos)?;
        let shift = pos as f32;
        close(&y.to_vec()?, &[0.5 + shift, -1.0 + shift + 1.0, 2.0, 3.0, -4.0, 1.5]);
        let table = table.to_vec()?;
        close(&table[pos as usize * 2..][..6], &[0.5, -1.0, 2.0, 3.0, -4.0, 1.5]);
    }
    let error = window.rows(&x, 8).unwrap_err().to_string();
    assert!(error.contains("seq + pos <= 10") && error.contains("pos = 8") && error.contains("seq = 3"), "{error}");
    let error = window.rows(&x, 10).unwrap_err().to_string();
    assert!(error.contains("`pos`") && error.contains("10"), "{error}");
    let mut trainer = window.trainer(Sgd::new(0.1))?;
    let ids = [[1.0f32, 2.0], [0.5, -1.0]];
    let first = trainer.step(&ids, 4)?.get()?;
    let second = trainer.step(&ids, 4)?.get()?;
    assert!(second < first, "{second} after {first}");
    Ok(())
}

#[test]
fn buffers_change_in_steps_and_are_saved() -> Result<(), Error> {
    devices().iter().try_for_each(buffers_on)
}

fn buffers_on(device: &Device) -> Result<(), Error> {
    let mut trainer = Pair::new(device)?.trainer(Sgd::new(0.0))?;
    let before = trainer.model().score(&X)?.0.to_vec()?;
    assert_eq!(trainer.model().score(&X)?.0.to_vec()?, before, "a call changes nothing");
    trainer.step_fool(&X)?.0.get()?;
    // Means of the columns of what each layer is given, halved.
    let own = |x: &[[f32; 3]; 2]| [0, 1, 2].map(|c| (x[0][c] + x[1][c]) / 4.0);
    let less = |x: &[[f32; 3]; 2], mean: [f32; 3]| x.map(|row| [row[0] - mean[0], row[1] - mean[1], row[2] - mean[2]]);
    let first = own(&X);
    let second = own(&less(&X, first));
    let (_, trace) = trainer.model().trace_score(&X)?;
    let taps = trace.get::<f32>("gen.value")?;
    assert_eq!(taps.shape(), [2, 2, 3]);
    let left = less(&X, first);
    let expected = [left, less(&left, second)].concat().concat();
    close(&taps.to_vec()?, &expected);
    let path = std::env::temp_dir().join(format!("meganeura-forms-{}.safetensors", std::process::id()));
    trainer.model().save(&path)?;
    let mut loaded = Pair::load(device, path.as_path())?;
    close(&loaded.trace_score(&X)?.1.get::<f32>("gen.value")?.to_vec()?, &expected);
    let _ = std::fs::remove_file(&path);
    assert_eq!(loaded.score(&X)?.1.to_vec()?, [7]);
    assert!(trace.get::<u32>("gen.value").is_err() && trace.get::<f32>("nothing").is_err());
    Ok(())
}

#[test]
fn each_loss_trains_its_own_tensors_with_moments_of_their_own() -> Result<(), Error> {
    devices().iter().try_for_each(each_on)
}

fn each_on(device: &Device) -> Result<(), Error> {
    let mut trainer = Pair::with_seed(device, 3)?.trainer(Adam::new(0.01))?;
    let names = |trainer: &mut PairTrainer, first: bool| -> Result<Vec<String>, Error> {
        let gradients = if first { trainer.gradients_fool(&X)? } else { trainer.gradients_judge(&X)? };
        Ok(gradients.iter().map(|(name, ..)| name.to_string()).collect())
    };
    assert_eq!(names(&mut trainer, true)?, ["gen.0.scale", "gen.1.scale"]);
    assert_eq!(names(&mut trainer, false)?, ["disc.weight", "disc.bias"]);
    for _ in 0..3 {
        trainer.step_judge(&X)?.get()?;
    }
    let (loss, scores) = trainer.step_fool(&X)?;
    let scores = scores.to_vec()?;
    let expected = scores.iter().map(|s| (s - 1.0) * (s - 1.0)).sum::<f32>() / 2.0;
    close(&[loss.get()?], &[expected]);
    // The first update of Adam is the rate in each element: had the steps of the other loss counted, it would be less.
    let mut model = trainer.into_model();
    let path = std::env::temp_dir().join(format!("meganeura-losses-{}.safetensors", std::process::id()));
    model.save(&path)?;
    let bytes = std::fs::read(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(bytes[8..8 + header].to_vec()).unwrap();
    let at = text.find("\"gen.0.scale\"").unwrap();
    let offsets = text[at..].split("\"data_offsets\":[").nth(1).unwrap();
    let start: usize = offsets.split(',').next().unwrap().trim().parse().unwrap();
    let scale: Vec<f32> = bytes[8 + header + start..][..12]
        .chunks_exact(4)
        .map(|word| f32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    assert!(scale.iter().all(|s| ((s - 1.0).abs() - 0.01).abs() < 1e-4), "{scale:?}");
    let _ = model.score(&X)?;
    Ok(())
}

#[test]
fn states_live_from_call_to_call_and_belong_to_one_model() -> Result<(), Error> {
    devices().iter().try_for_each(states_on)
}

fn states_on(device: &Device) -> Result<(), Error> {
    let mut memory = Memory::new(device)?;
    close(&memory.add(&[[1.0f32, 2.0], [3.0, 4.0]], 0)?.to_vec()?, &[1.0, 2.0, 3.0, 4.0]);
    let mut other = memory.share();
    close(&memory.add(&[[5.0f32, 6.0]], 2)?.to_vec()?, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    close(&memory.add(&[[-1.0f32, -2.0]], 1)?.to_vec()?, &[1.0, 2.0, -1.0, -2.0]);
    close(&memory.row(2)?.to_vec()?, &[5.0, 6.0]);
    close(&other.row(2)?.to_vec()?, &[0.0, 0.0]);
    memory.reset();
    close(&memory.row(1)?.to_vec()?, &[0.0, 0.0]);
    assert_eq!(Memory::PARAMETERS.iter().map(|p| p.name).collect::<Vec<_>>(), ["scale"]);
    Ok(())
}
