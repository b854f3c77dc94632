use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc1: Linear<784, hidden>,
        fc2: Linear<hidden, 10>,

        pub fn run(x: f32[batch, 784]) -> f32[batch, 10] {
            let h = fc1(x, 3);
            let i = softmax(x, axes = 1);
            let j = relu(y = x);
            fc2(h)
        }
    }
}

fn main() {}
