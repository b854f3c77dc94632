//! Devices that look at what every step makes: the first value that is not finite is named, with its step.
#![allow(clippy::unwrap_used, clippy::panic)]

use meganeura::{Device, Error, NotFinite, Sgd, model};
use meganeura_runtime::testing::devices_with;

model! {
    /// Three products; the last one's result is the argument of a logarithm.
    model Logs<batch in 1..=20> {
        fc1: Linear<4, 8>,
        fc2: Linear<8, 8>,
        fc3: Linear<8, 3>,

        /// What the first product gives.
        pub fn first(x: f32[batch, 4]) -> f32[batch, 8] { fc1(x) }

        /// What the logarithm is taken of.
        pub fn inner(x: f32[batch, 4]) -> f32[batch, 3] { fc3(tanh(fc2(tanh(fc1(x))))) }

        /// The logarithm.
        pub fn run(x: f32[batch, 4]) -> f32[batch, 3] { log(inner(x)) }
    }

    layer Tower<dim> {
        param scale: f32[dim] = ones;
        fn forward(x: f32[.., dim]) -> f32[.., dim] { exp(x * scale) }
    }

    /// Powers of e of powers of e.
    model Towers<batch in 1..=20> {
        floors: [Tower<2>; 6],

        /// Overflows within six floors.
        pub fn run(x: f32[batch, 2]) -> f32[batch] {
            let mut h = x;
            for floor in floors { h = floor(h); }
            sum(h - h, axis = -1)
        }
    }

    /// The root of what training makes negative.
    model Root<batch in 1..=9> {
        param w: f32[1] = constant(0.5);

        /// Falls without end.
        #[train]
        pub fn loss(x: f32[batch, 1]) -> f32 { mean(sqrt(x * w)) }
    }
}

/// The devices of this machine, looking.
fn devices() -> Vec<Device> {
    devices_with(Device::options().check_finite(true))
}

fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|k| ((k * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

fn not_finite<T>(result: meganeura::Result<T>) -> NotFinite {
    match result {
        Err(Error::NotFinite(found)) => *found,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("every value was finite"),
    }
}

#[test]
fn the_step_that_takes_the_logarithm_of_a_negative_number_is_named() {
    for device in devices() {
        let mut model = Logs::with_seed(&device, 1).unwrap();
        let x = values(7 * 4, 5);
        // What is finite is not complained about.
        let inner = model.inner(&x).unwrap().to_vec().unwrap();
        let first = inner.iter().position(|value| *value < 0.0).unwrap();
        assert!(first > 0 && inner.len() == 21, "{inner:?}");
        let error = model.run(&x).unwrap_err();
        let text = error.to_string();
        let found = not_finite(Err::<(), _>(error));
        assert_eq!((found.model.as_str(), found.entry.as_str(), found.step), ("Logs", "run", 2), "{text}");
        assert!(found.kernel == "contract" && found.what.contains("log"), "{text}");
        assert!(found.value.is_nan() && found.iteration.is_empty() && found.read.is_none(), "{text}");
        assert_eq!((found.position, found.shape), (vec![first / 3, first % 3], vec![7, 3]), "{text}");
        assert!(text.contains("step 2 of `Logs.run` makes NaN at "), "{text}");
    }
}

#[test]
fn an_infinity_is_named_in_the_iteration_that_made_it_and_not_where_it_becomes_nan() {
    for device in devices() {
        let mut model = Towers::new(&device).unwrap();
        // e^1 = 2.7, e^2.7 = 15, e^15 = 3.8e6, e^3.8e6 = inf; from 0 it takes one more.
        let found = not_finite(model.run(&[0.0, 0.0, 0.0, 1.0, 1.0, 0.0]));
        assert_eq!(found.value, f32::INFINITY, "{found}");
        assert_eq!((found.iteration, found.position, found.shape), (vec![3], vec![1, 1], vec![3, 2]));
        assert_eq!(found.layer, "floors");
        let found = not_finite(model.run(&[0.0, 0.0]));
        assert_eq!((found.iteration, found.position), (vec![4], vec![0, 0]));
    }
}

#[test]
fn what_came_in_is_named_too() {
    for device in devices() {
        let mut model = Logs::new(&device).unwrap();
        let mut x = values(12, 3);
        x[9] = f32::NAN;
        let found = not_finite(model.first(&x));
        assert_eq!((found.step, &found.position), (0, &vec![2, 0]));
        let (name, value, position) = found.read.clone().unwrap();
        assert!(name == "x" && value.is_nan() && position == [2, 1], "{found}");
        assert!(found.to_string().ends_with("; it reads NaN at [2, 1] of `x`"), "{found}");
    }
}

#[test]
fn a_training_step_that_fails_updates_nothing() {
    for device in devices() {
        let mut trainer = Root::new(&device).unwrap().trainer(Sgd::new(0.1)).unwrap();
        let before = trainer.gradients(&[1.0]).unwrap().loss();
        let found = not_finite(trainer.step(&[-1.0]));
        assert!(found.entry == "loss, training" && found.value.is_nan(), "{found}");
        // The next step begins where the failed one did.
        assert_eq!(trainer.step(&[1.0]).unwrap().get().unwrap(), before);
        assert!(trainer.step(&[1.0]).unwrap().get().unwrap() < before);
    }
}

#[test]
fn times_are_told_of_checked_steps_too() {
    for device in devices_with(Device::options().check_finite(true).profile(true)) {
        let mut model = Logs::new(&device).unwrap();
        drop(model.inner(&values(8, 3)).unwrap());
        let profile = device.take_profile().unwrap();
        assert_eq!(profile.steps().map(|step| step.launches).collect::<Vec<_>>(), [1, 1, 1], "{device}");
        assert!(profile.steps().all(|step| !step.time.is_zero()));
    }
}
