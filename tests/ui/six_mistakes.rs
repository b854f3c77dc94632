use meganeura::model;

model! {
    layer Block<dim, ffn> {
        norm: RmsNorm<dim>,
        up: Linear<dim, ffn>,
        down: Linear<ffn, dimm>,

        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            x + down(sillu(up(norm(x))))
        }
    }

    pub model Net<dim = 64, batch in 1..=8> {
        block: Block<dim, 128>,
        head: Linear<dim>,
        tail: Linear<dim, 10>,

        pub fn a(x: f32[batch, 63]) -> f32[batch, 10] {
            tail(x)
        }

        pub fn b(x: f32[batch, dim]) -> f32[batch, 10] {
            tale(x)
        }

        pub fn c(x: f32[batch, dim]) -> f32[batch, 11] {
            tail(x)
        }
    }
}

fn main() {}
