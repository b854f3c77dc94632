use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc1: Linear<784, hidden>,
        fc2: Linear<hidden, 10>,

        pub fn run(x: f32[batch, 784], ids: u32[batch, 784]) -> f32[batch, 10] {
            let a = x + ids;
            let b = x & x;
            fc2(relu(fc1(x)))
        }
    }
}

fn main() {}
