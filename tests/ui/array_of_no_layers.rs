use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        a: [Linear<784, 784>; 0],
        b: [Linear<784, 784>; 1.5],
        fc: Linear<784, 10>,

        pub fn run(x: f32[batch, 784]) -> f32[batch, 10] {
            fc(x)
        }
    }
}

fn main() {}
