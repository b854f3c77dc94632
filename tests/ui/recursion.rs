use meganeura::model;

model! {
    layer A<dim> {
        b: B<dim>,

        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            b(x)
        }
    }

    layer B<dim> {
        a: A<dim>,

        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            a(x)
        }
    }
}

fn main() {}
