use meganeura::model;

model! {
    pub model Net<hidden = 128, batch in 1..=256> {
        a: [Linear<784, 784>; 3],
        b: [Linear<784, 784>; 2],
        fc: Linear<784, 10>,

        pub fn run(x: f32[batch, 784]) -> f32[batch, 10] {
            let mut y = x;
            for (p, q) in (a, b) { y = q(p(y)); }
            fc(y)
        }
    }
}

fn main() {}
