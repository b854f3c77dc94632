//! Paths that lead to no layer: rustc says so, at the path, and nothing else does.
mod broken {
    meganeura::model! {
        use crate::layers::SwiGl;
        pub layer Needs<dim> { a: SwiGl<dim> }
        pub layer Free<dim> { a: Linear<dim, dim> }
    }
}

mod layers {
    meganeura::model! {
        pub layer SwiGlu<dim> { a: Linear<dim, dim> }
    }
}

meganeura::model! {
    use broken::{Free, Needs};
    model UsesFree<dim = 2> { a: Free<dim> }
    model UsesNeeds<dim = 2, n in 1..=4> { a: Needs<dim>, pub fn run(x: f32[n, dim]) -> f32[n, dim] { a(x) } }
}

meganeura::model! {
    use std::vec::Vec;
    model C<dim = 2> { a: Vec<dim> }
}

meganeura::model! {
    use crate::layers::Other;
    model Instance = Other<3>;
}

fn use_them(needs: &mut UsesNeeds) {
    let _ = (needs.run(&[0.0; 4]), UsesNeeds::schedule_run(), Instance::PARAMETERS);
}

fn main() {
    println!("{} {}", UsesFree::PARAMETER_COUNT, C::PARAMETER_COUNT);
}
