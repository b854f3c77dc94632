#![deny(unused_variables)]
use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc1: Linear<784, hidden>,
        fc2: Linear<hidden, 10>,
        spare: Linear<3, 4>,

        pub fn run(x: f32[batch, 784]) -> f32[batch, 10] {
            let h = relu(fc1(x));
            let again = h;
            for i in 0..2 { let part = x; }
            fc2(h)
        }
    }
}

fn main() {}
