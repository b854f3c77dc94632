use meganeura::model;

model! {
    pub model Net<seq in 1..=8> {
        embed: Embedding<100, 16>,
        conv: Conv2d<3, 8, 3>,

        pub fn run(tokens: u32[seq]) -> f32[seq, 16] {
            multinomial(embed(tokens))
        }
    }
}

fn main() {}
