//! Where rustc finds two meanings: names that macros made give way to no glob, no derive and no outer scope.
mod derives {
    use std::clone::Clone;
    meganeura::model! { layer Clone<dim> { a: RmsNorm<dim> } }
}

mod globs {
    use crate::pairs::*;
    meganeura::model! { pub layer Pair<dim> { a: RmsNorm<dim> } }
    meganeura::model! {
        use self::Pair;
        model M<dim = 2> { a: Pair<dim> }
    }
}

mod pairs {
    meganeura::model! { pub layer Pair<dim> { a: Linear<dim, dim> } }
}

mod functions {
    meganeura::model! { layer Outer<dim> { a: RmsNorm<dim> } }

    fn function() {
        meganeura::model! { layer Outer<dim> { a: Linear<dim, dim> } }
        meganeura::model! {
            use Outer;
            model M<dim = 2> { a: Outer<dim> }
        }
    }
}

fn main() {}
