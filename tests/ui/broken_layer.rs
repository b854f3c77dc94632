//! Each mistake of a layer is told once, however many import it.
mod layers {
    meganeura::model! {
        pub layer Syntax<dim> { a: Linear<dim dim> }
        pub layer Unknown<dim> { a: Linaer<dim> }
        pub layer Arity<dim> { a: Sound<dim, dim> }
        pub layer Header<dim dim> { a: Sound<dim> }
        pub layer Sound<dim> { a: Linear<dim, dim> }
        layer Inside<dim> { a: Arity<dim>, b: Arity<dim> }
        pub layer Through<dim> { a: Inside<dim> }
    }
}

mod importer {
    meganeura::model! {
        use crate::layers::{Arity, Header, Sound, Syntax, Through, Unknown};
        pub model A<dim = 2> { a: Syntax<dim>, b: Unknown<dim>, c: Arity<dim>, d: Through<dim>, e: Header<dim> }
        pub model B<dim = 2, n in 1..=4> {
            a: Syntax<dim>, sound: Sound<dim>, b: Unknown<dim, dim>,
            pub fn run(x: f32[n, dim]) -> f32[n, 3] { a(x) }
        }
    }
}

mod second {
    meganeura::model! {
        use crate::layers::Through;
        pub layer C<dim> { a: Through<dim> }
    }
}

meganeura::model! {
    use second::C;
    use importer::A;
    model D<dim = 2> { a: A, c: C<dim> }
}

fn main() {
    println!("{} {} {}", importer::A::PARAMETER_COUNT, importer::B::PARAMETER_COUNT, D::PARAMETER_COUNT);
}
