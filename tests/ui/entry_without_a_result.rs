use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc: Linear<784, 10>,
        pub fn run(x: f32[batch, 784]) { fc(x); }
        pub fn other(x: f32[batch, 784]) { fc(x) }
    }
}

fn main() {}
