//! A program that only infers does not carry how to train: this one's own file is looked into.
#![allow(clippy::unwrap_used)]

use meganeura::{Device, Sgd, model};

model! {
    model Inferring<batch in 1..=7> {
        fc: Linear<5, 3>,
        pub fn called(x: f32[batch, 5]) -> f32[batch, 3] { fc(x) }
        #[train]
        pub fn never_trained(x: f32[batch, 5], y: f32[batch, 3]) -> f32 { mse(called(x), y) }
    }

    model Explained<batch in 1..=7> {
        fc: Linear<5, 3>,
        pub fn asked(x: f32[batch, 5]) -> f32[batch, 3] { relu(fc(x)) }
    }

    model Training<batch in 1..=7> {
        fc: Linear<5, 3>,
        #[train]
        pub fn learned(x: f32[batch, 5], y: f32[batch, 3]) -> f32 { mse(fc(x), y) }
    }
}

#[test]
fn the_training_schedule_of_a_model_that_is_not_trained_is_not_in_the_binary() {
    let device = Device::host();
    let result = Inferring::new(&device).unwrap().called(&[[0.5; 5]]).unwrap().to_vec().unwrap();
    assert_eq!(result.len(), 3);
    let mut trainer = Training::new(&device).unwrap().trainer(Sgd::new(0.1)).unwrap();
    trainer.step(&[[0.5; 5]], &[[0.25; 3]]).unwrap().get().unwrap();

    let binary = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    // Put together here, so that this test does not bring the words itself.
    let holds = |name: &str| {
        let text = [name, "training"].join(", ");
        binary.windows(text.len()).any(|bytes| bytes == text.as_bytes())
    };
    assert!(holds("learned"), "the search finds what is there");
    assert!(!holds("never_trained"));
}

#[test]
fn an_explanation_that_nobody_asks_for_is_not_in_the_binary() {
    let binary = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    // As explanations begin.
    let holds = |name: &str| {
        let text = [name, "costs are estimates for the reference device"].join("; ");
        binary.windows(text.len()).any(|bytes| bytes == text.as_bytes())
    };
    assert!(Explained::explain_asked().contains("rejected") && holds("asked"), "the search finds what is there");
    assert!(!holds("called") && !holds("learned"));
}
