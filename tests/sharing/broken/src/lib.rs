//! Mistakes with layers of another crate; it never builds.

/// In a module, so that one layer is between the model and the mistake.
pub mod own {
    mega::model! {
        use layers::attention::Attention;

        /// Reaches another crate.
        pub layer Deep<dim, heads> {
            a: Attention<dim, heads>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] { a(x) }
        }
    }
}

mega::model! {
    use layers::{Regressor, attention::Attention, decoder::Block, mlp::SwiGlu};
    use own::Deep;

    model Count<dim = 8> { a: SwiGlu<dim>, b: SwiGlu<dim, 1, 2>, c: SwiGlu<dim, fnf = 4>, d: SwiGlu<dim, 1, dim = 2> }

    model Rest<dim = 10, n in 1..=4> {
        a: Attention<dim, 3>,
        b: [Block<dim, 3, ffn = 2>; 4],
        c: Deep<dim, 3>,
        e: Deep<dim, 5>,
        f: SwiGlu<dim, 0>,

        pub fn run(x: f32[n, 8]) -> f32[n, dim] { e(x) }
        pub fn other(x: f32[n, dim]) -> f32[n, dim] { e.backward(x) }
    }

    pub model Instance = Regressor<inputs = 0>;
}

mega::model! {
    use layers::attention::Helper;
    model A<dim = 2> { a: Helper<dim, 1> }
}

mega::model! {
    use layers::norm::Norm;
    model B<dim = 2> { a: Norm<dim> }
}

mega::model! {
    use layers::mlp::SwiGl;
    model C<dim = 2> { a: SwiGl<dim> }
}

layers::mlp::SwiGlu! {}

/// The types are there, whatever is wrong with the models.
pub fn use_them(rest: &mut Rest) -> u64 {
    let _ = (rest.run(&[0.0; 8]), Rest::schedule_run(), Rest::PARAMETERS, C::PARAMETERS, Count::PARAMETERS);
    A::PARAMETER_COUNT + B::PARAMETER_COUNT
}
