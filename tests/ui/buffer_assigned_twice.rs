use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc: Linear<784, 10>,
        buffer mean: f32[10] = zeros;
        fn step(x: f32[batch, 784]) -> f32[batch, 10] {
            mean = fc(x)[0];
            mean = fc(x)[1];
            fc(x)
        }
        #[train] pub fn loss(x: f32[batch, 784]) -> f32 { sum(step(x)) }
    }
}

fn main() {}
