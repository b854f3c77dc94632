use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc1: Linear<784, hidden>,
        fc2: Linear<hidden, 10>,

        pub fn run(x: f32[batch, 784]) -> f32[batch, 10] {
            let mut y = x;
            for row in x { y = y + row; }
            fc2(relu(fc1(y)))
        }
    }
}

fn main() {}
