use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc1: Linear<784, hidden>,
        fc2: Linear<hidden, 10>,

        pub fn run(x: f32[batch, 784]) -> f32[batch, 10] {
            let y = if batch > 3 { x } else { x * 2 };
            let z = if x > 0 { x } else { y };
            fc2(relu(fc1(z)))
        }
    }
}

fn main() {}
