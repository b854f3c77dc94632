use meganeura::model;

model! {
    pub model Net<batch in 1..=8> {
        blocks: [Linear<4, 5>; 3],

        pub fn run(x: f32[batch, 4]) -> f32[batch, 5] {
            let mut h = x;
            for block in blocks { h = block(h); }
            h
        }
    }
}

fn main() {}
