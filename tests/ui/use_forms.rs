//! Forms of `use` that `model!` does not take, and names that mean two things.
use meganeura::model;

mod layers {
    meganeura::model! {
        pub layer Twin<dim> { a: Linear<dim, dim> }
    }
}

model! {
    use crate::layers::*;
    use crate::{layers::{self}, layers::Twin as _};
    pub use crate::layers::Twin as Public;
    #[cfg(unix)]
    use crate::layers::Twin as Conditional;
    use crate::layers::Twin;
    use crate::layers::Twin;

    layer Conditional<dim> { a: Linear<dim, dim> }
    layer Dollar<dim> { a: Linear<dim, $x> }
    struct NotOurs {}
    model M<dim = 2> { a: Conditional<dim>, b: Twin<dim>, perhaps_from_the_glob: SwiGlu<dim, 1> }
}

fn main() {
    println!("{}", M::PARAMETER_COUNT);
}
