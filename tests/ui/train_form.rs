use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        fc: Linear<784, 10>,
        #[train(param = "fc.*")] pub fn loss(x: f32[batch, 784]) -> f32 { sum(fc(x)) }
        #[train] fn other(x: f32[batch, 784]) -> f32 { sum(fc(x)) }
    }
}

fn main() {}
