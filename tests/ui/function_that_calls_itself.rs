use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc: Linear<784, 10>,
        fn again(x: f32[batch, 784]) -> f32[batch, 784] { again(x) }

        pub fn run(x: f32[batch, 784]) -> f32[batch, 10] {
            fc(again(x))
        }
    }
}

fn main() {}
