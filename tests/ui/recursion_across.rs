//! A layer that contains itself across two invocations: neither can come first.
mod left {
    meganeura::model! {
        use crate::right::Right;
        pub layer Left<dim> { a: Right<dim> }
    }
}

mod right {
    meganeura::model! {
        use crate::left::Left;
        pub layer Right<dim> { a: Left<dim> }
    }
}

fn main() {}
