use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc1: Linear<784, hidden>,

        pub fn run(x: f64[batch, 784], y: float[batch], z: f32[]) -> f32[batch, hidden] {
            fc1(x)
        }
    }
}

fn main() {}
