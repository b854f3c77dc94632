use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        gen: Linear<784, 10>,
        disc: Linear<10, 1>,
        #[train(params = "dics.*")] pub fn loss(x: f32[batch, 784]) -> f32 { sum(disc(gen(x))) }
    }
}

fn main() {}
