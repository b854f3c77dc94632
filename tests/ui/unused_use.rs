//! What rustc warns about, it warns about at the user's text and nowhere else.
#![deny(warnings)]

mod layers {
    meganeura::model! {
        pub(crate) layer Attention<dim> { a: Linear<dim, dim> }
        pub(crate) layer SwiGlu<dim> { a: Linear<dim, dim> }
    }
}

mod private {
    meganeura::model! {
        use crate::layers::{Attention, SwiGlu as Gate};
        layer Unused<dim> { a: Attention<dim> }
        model NeverNamed<dim = 2> { a: Attention<dim> }
    }
}

fn main() {}
