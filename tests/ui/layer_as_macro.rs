//! A layer called as a macro.
mod layers {
    meganeura::model! { pub layer SwiGlu<dim> { a: Linear<dim, dim> } }
}

layers::SwiGlu! {}

fn main() {}
