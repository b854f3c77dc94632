//! Several models, files with parts of them, and threads: what handles of models and tensors promise.
#![allow(clippy::unwrap_used, clippy::panic)]

use meganeura::{Adam, Device, DeviceKind, Error, Sgd, Tensor, model};
use meganeura_runtime::testing::devices;

model! {
    /// Two layers, to be saved apart.
    model Pair<rows in 1..=200> {
        base: Linear<4, 37>,
        extra: Linear<37, 2>,

        /// What both make of it.
        pub fn run(x: f32[rows, 4]) -> f32[rows, 2] { extra(tanh(base(x))) }

        /// The mean of squares.
        #[train]
        pub fn loss(x: f32[rows, 4], y: f32[rows, 2]) -> f32 { mse(run(x), y) }
    }

    /// One of them, from a file with both.
    #[ignore("extra.*")]
    model First<rows in 1..=200> {
        base: Linear<4, 37>,

        /// What it makes.
        pub fn run(x: f32[rows, 4]) -> f32[rows, 37] { tanh(base(x)) }
    }

    /// The same as a member.
    model Holder<rows in 1..=200> {
        #[name = ""]
        first: First,

        /// What it makes.
        pub fn run(x: f32[rows, 4]) -> f32[rows, 37] { first.run(x) }
    }
}

fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|k| ((k * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

fn file(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("meganeura-{name}-{}.safetensors", std::process::id()))
}

#[test]
fn a_part_is_saved_and_loaded_over_fresh_parameters() {
    for device in devices() {
        let (x, path) = (values(3 * 4, 1), file("part"));
        let mut seven = Pair::with_seed(&device, 7).unwrap();
        seven.save_only("extra.*", &path).unwrap();
        let Err(error) = Pair::load(&device, &path) else { panic!("the base is missing") };
        assert!(error.to_string().contains("missing `base.weight`"), "{error}");
        let mut mixed = Pair::loader().allow_missing("base.*").load(&device, &path).unwrap();
        mixed.save_only("base.*", &path).unwrap();
        let mut fresh = Pair::new(&device).unwrap();
        // Both halves of `mixed` are found again: the base in a new model, the rest in seed 7.
        let mut other = Pair::loader().allow_missing("extra.*").load(&device, &path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let run = |model: &mut Pair| model.run(&x).unwrap().to_vec().unwrap();
        assert_eq!(run(&mut other), run(&mut fresh));
        assert_ne!(run(&mut mixed), run(&mut fresh));
        assert_ne!(run(&mut mixed), run(&mut seven));
        let Err(Error::Mismatch { found, .. }) = seven.save_only("head.*", &path) else { panic!("no such parameter") };
        assert!(found == "none" && !path.exists());
    }
}

#[test]
fn names_of_a_file_are_changed_before_they_are_compared() {
    let (device, path) = (Device::host(), file("names"));
    let mut model = Pair::with_seed(&device, 3).unwrap();
    model.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    // As another program would have named them; lengths stay, so that the header does.
    let mut renamed = bytes.clone();
    let at = (0..400).filter(|at| bytes[*at..].starts_with(b"base.")).collect::<Vec<_>>();
    assert_eq!(at.len(), 2);
    at.into_iter().for_each(|at| renamed[at..at + 5].copy_from_slice(b"stem:"));
    assert!(Pair::load(&device, &renamed).is_err());
    let x = values(4, 9);
    let mut again = Pair::loader().rename("stem:", "base.").load(&device, &renamed).unwrap();
    assert_eq!(again.run(&x).unwrap().to_vec().unwrap(), model.run(&x).unwrap().to_vec().unwrap());
    let with = |name: &str| name.replace(':', ".").replace("stem", "base");
    let mut again = Pair::loader().rename_with(with).load(&device, &renamed).unwrap();
    assert_eq!(again.run(&x).unwrap().to_vec().unwrap(), model.run(&x).unwrap().to_vec().unwrap());
}

#[test]
fn what_a_model_ignores_may_be_in_its_files_and_nothing_else() {
    let (device, path) = (Device::host(), file("ignored"));
    let (x, model) = (values(4, 9), Pair::with_seed(&device, 3).unwrap());
    model.save(&path).unwrap();
    let mut first = First::load(&device, &path).unwrap();
    let mut holder = Holder::load(&device, &path).unwrap();
    model.save_only("extra.*", &path).unwrap();
    let Err(error) = First::load(&device, &path) else { panic!("the base is missing") };
    assert!(error.to_string().contains("missing `base.weight`"), "{error}");
    first.save(&path).unwrap();
    let Err(error) = Pair::load(&device, &path) else { panic!("the rest is missing") };
    assert!(error.to_string().contains("missing `extra.weight`"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let run = first.run(&x).unwrap().to_vec().unwrap();
    assert_eq!(holder.run(&x).unwrap().to_vec().unwrap(), run);
    assert_ne!(First::new(&device).unwrap().run(&x).unwrap().to_vec().unwrap(), run);
}

#[test]
fn shared_parameters_are_trained_by_one_and_seen_by_both() {
    for device in devices() {
        let (x, y) = (values(5 * 4, 2), values(5 * 2, 3));
        let mut seen = Pair::new(&device).unwrap();
        let before = seen.run(&x).unwrap().to_vec().unwrap();
        let mut trainer = seen.share().trainer(Sgd::new(0.1).nesterov(0.9)).unwrap();
        let first = trainer.step(&x, &y).unwrap().get().unwrap();
        for _ in 0..20 {
            trainer.step(&x, &y).unwrap();
        }
        assert!(trainer.step(&x, &y).unwrap().get().unwrap() < first);
        let after = seen.run(&x).unwrap().to_vec().unwrap();
        assert_ne!(before, after);
        assert_eq!(after, trainer.model().run(&x).unwrap().to_vec().unwrap());
    }
}

/// Two models train on two threads of one device, with one tensor as an argument of both: each comes to the bits that
/// it comes to alone.
#[test]
fn models_on_two_threads_of_one_device_do_not_meet() {
    for device in devices() {
        let (x, y) = (values(150 * 4, 4), values(150 * 2, 5));
        let shared = Tensor::new(&device, &x, &[150, 4]).unwrap();
        let train = |seed: u64| {
            let mut trainer = Pair::with_seed(&device, seed).unwrap().trainer(Adam::new(0.01)).unwrap();
            for _ in 0..30 {
                trainer.step(&shared, &y).unwrap();
            }
            trainer.into_model().run(&shared).unwrap().to_vec().unwrap()
        };
        let alone = [train(1), train(2)];
        assert_ne!(alone[0], alone[1]);
        let together = std::thread::scope(|scope| {
            let threads = [1, 2].map(|seed| scope.spawn(move || train(seed)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(together, alone);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (x, y) = (values(200 * 4, 6), values(200 * 2, 7));
    let trained = |threads: usize| {
        let device = Device::host_with_threads(threads);
        let mut trainer = Pair::with_seed(&device, 1).unwrap().trainer(Adam::new(0.01)).unwrap();
        let losses: Vec<f32> = (0..10).map(|_| trainer.step(&x, &y).unwrap().get().unwrap()).collect();
        let scores = trainer.into_model().run(&x).unwrap();
        let bits: Vec<u32> = scores.as_slice().unwrap().iter().chain(&losses).map(|x| x.to_bits()).collect();
        bits
    };
    let one = trained(1);
    assert!([2, 3, 8].into_iter().all(|threads| trained(threads) == one));
}

#[test]
fn without_a_gpu_the_cpu_is_taken_and_says_what_it_runs() {
    let (device, cpu) = (Device::open().unwrap(), Device::host());
    assert!(matches!(device.info().kind, DeviceKind::Gpu | DeviceKind::Host), "{device}");
    assert_eq!(cpu.info().kind, DeviceKind::Host);
    assert!(Device::list().contains(cpu.info()), "{:?}", Device::list());
    #[cfg(target_arch = "x86_64")]
    {
        let wide = ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
        let has = |feature: &&str| match *feature {
            "avx512f" => std::is_x86_feature_detected!("avx512f"),
            "avx512bw" => std::is_x86_feature_detected!("avx512bw"),
            "avx512cd" => std::is_x86_feature_detected!("avx512cd"),
            "avx512dq" => std::is_x86_feature_detected!("avx512dq"),
            _ => std::is_x86_feature_detected!("avx512vl"),
        };
        let text = cpu.to_string();
        let expected = if wide.iter().all(has) {
            "AVX-512"
        } else if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            "AVX2 and FMA"
        } else {
            "portable"
        };
        assert!(text.contains(expected), "{text}, expected {expected}");
    }
}
