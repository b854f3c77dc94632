//! Arguments for a layer from another invocation.
mod layers {
    meganeura::model! {
        pub layer SwiGlu<dim, ffn> {
            up: Linear<dim, ffn>,
            fn forward(x: f32[.., dim]) -> f32[.., ffn] { up(x) }
        }
    }
}

meganeura::model! {
    use layers::SwiGlu;

    model Count<dim = 8, n in 1..=4> {
        a: SwiGlu<dim>,
        b: SwiGlu<dim, 1, 2>,
        c: SwiGlu<dim, fnf = 4>,
        d: SwiGlu<dim, 1, dim = 2>,
        e: SwiGlu<dim, 4>,

        pub fn run(x: f32[n, dim]) -> f32[n, 4] { e(x, x) }
        pub fn other(x: f32[n, dim]) -> f32[n, 4] { e.backward(x) }
    }
}

fn main() {
    println!("{}", Count::PARAMETER_COUNT);
}
