use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        a: [Linear<784, 784>; 3],
        fc: Linear<784, 10>,

        pub fn run(x: f32[batch, 784]) -> f32[batch, 10] {
            let y = a[3](x) + a[-4](x);
            fc(y)
        }
    }
}

fn main() {}
