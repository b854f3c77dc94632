use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc1: Linear<784, hidden>,
        fc2: Linear<hidden, 10>,

        pub fn logits(x: f32[batch, 784]) -> f32[batch, 10] {
            let a = x[:, 0];
            let b = x ** 2;
            let c = .5;
            fc2(fc1(x))
        }

        #[train]
        pub fn loss(x: f32[batch, 784], label: u32[batch]) -> f32 {
            cross_entropy(logits(x), label)
        }
    }
}

fn main() {}
