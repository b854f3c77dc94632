use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc: Linear<784, 10>,

        pub fn run(x: f32[batch, 784]) -> (f32[batch, 10], (f32[batch, 784], f32)) {
            (fc(x), (x, 1.0))
        }
    }
}

fn main() {}
