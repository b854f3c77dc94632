//! What only values cause in a layer from another invocation: at the member, with the place in the layer.
mod attention {
    meganeura::model! {
        pub layer Attention<dim, heads> {
            let head = dim / heads;
            q: Linear<dim, head>,
            out: Linear<dim, dim>,

            fn forward(x: f32[.., dim]) -> f32[.., dim] {
                out(q(x))
            }
        }
    }
}

mod between {
    meganeura::model! {
        use crate::attention::Attention;
        pub layer Deep<dim, heads> { a: Attention<dim, heads> }
        pub model Base<dim = 8, n in 1..=4> {
            a: Attention<dim, 1>,
            pub fn run(x: f32[n, dim]) -> f32[n, dim] { a(x) }
        }
    }
}

meganeura::model! {
    use attention::Attention;
    use between::{Base, Deep};

    layer Own<dim> { a: Attention<dim, 7> }

    model Rest<dim = 10, n in 1..=4> {
        a: Attention<dim, 3>,
        b: [Deep<dim, 4>; 4],
        c: Own<dim>,
        d: Attention<dim, 0>,
        e: Attention<dim, 2>,
        f: Base<n = 9>,
        let g = dim / 4;

        pub fn run(x: f32[n, dim]) -> f32[n, dim] { e(x) }
        pub fn narrow(x: f32[n, 9]) -> f32[n, dim] { e(x) }
    }

    model Odd = Base<0>;
}

fn main() {
    println!("{} {}", Rest::PARAMETER_COUNT, Odd::PARAMETER_COUNT);
}
