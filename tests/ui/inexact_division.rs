use meganeura::model;

model! {
    layer Half<dim> {
        let half = dim / 2;
        fc: Linear<dim, half>,

        fn forward(x: f32[.., dim]) -> f32[.., half] {
            fc(x)
        }
    }

    pub model Net<batch in 1..=8> {
        half: Half<7>,

        pub fn run(x: f32[batch, 7]) -> f32[batch, 3] {
            half(x)
        }
    }
}

fn main() {}
