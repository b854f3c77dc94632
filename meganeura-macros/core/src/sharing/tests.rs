//! Items across invocations, with a stand-in for what rustc does between the two calls.
#![allow(clippy::unwrap_used)]

use crate::testing::Expander;

const NORM: &str = "pub(crate) layer Norm<dim, eps = 1e-5> {
    inner: RmsNorm<dim, eps = eps>,
    fn forward(x: f32[.., dim]) -> f32[.., dim] { inner(x) }
}";

const HALF: &str = "use crate::norm::Norm;
layer Helper<a, b> { up: Linear<a, b>, fn forward(x: f32[.., a]) -> f32[.., b] { up(x) } }
pub layer Half<dim> {
    let half = dim / 2;
    norm: Norm<dim>, up: Helper<dim, half>,
    fn forward(x: f32[.., dim]) -> f32[.., half] { up(norm(x)) }
    pub fn twice(x: f32[.., dim]) -> f32[.., half] { 2 * forward(x) }
}";

const NET: &str = "use crate::half::Half;
layer Helper<dim> { param w: f32[dim] = ones; fn forward(x: f32[.., dim]) -> f32[.., dim] { x * w } }
pub model Net<dim = 8, batch in 1..=4> {
    half: Half<dim>, own: Helper<dim>,
    pub fn run(x: f32[batch, dim]) -> f32[batch, 4] { half(own(x)) + half.twice(x) }
}";

fn expanded(modules: &[(&str, &str)]) -> Expander {
    let mut expander = Expander::default();
    for (module, text) in modules {
        expander.module(&format!("crate::{module}"), text);
    }
    expander
}

/// The messages of all modules; every chain has come to its end.
fn mistakes(modules: &[(&str, &str)]) -> Vec<String> {
    let made = expanded(modules);
    assert!(made.missing().is_empty(), "{:?}", made.missing());
    made.errors()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The bytes and statics of a model.
fn data(made: &Expander) -> String {
    let text = made.tokens.to_string();
    let at = text.find("static MODEL").unwrap();
    text[at..].to_string()
}

#[test]
fn layers_arrive_with_helpers_of_their_own_whatever_the_order_of_modules() {
    let made = expanded(&[("norm", NORM), ("half", HALF), ("net", NET)]);
    assert_eq!(made.errors(), [""; 0]);
    let text = made.tokens.to_string();
    for name in ["half.norm.inner.weight", "half.up.up.weight", "own.w"] {
        assert!(text.contains(name), "{name} in {text}");
    }
    let backwards = expanded(&[("net", NET), ("half", HALF), ("norm", NORM)]);
    assert_eq!((backwards.errors().len(), backwards.missing().len()), (0, 0));
    assert_eq!(backwards.payload("crate::half::Half"), made.payload("crate::half::Half"));
    assert_eq!(data(&backwards), data(&made));
}

#[test]
fn a_model_is_the_same_data_wherever_its_layers_were_written() {
    let layers = "layer Block<dim> {
        norm: RmsNorm<dim>, up: Linear<dim, dim>,
        fn forward(x: f32[.., dim]) -> f32[.., dim] { x + relu(up(norm(x))) }
    }";
    let model = "pub model Deep<n in 1..=9> {
        blocks: [Block<6>; 3],
        pub fn run(x: f32[n, 6]) -> f32[n, 6] { let mut x = x; for block in blocks { x = block(x); } x }
        #[train] pub fn loss(x: f32[n, 6], y: f32[n, 6]) -> f32 { mse(run(x), y) }
    }";
    let together = expanded(&[("all", &format!("{layers} {model}"))]);
    let apart = expanded(&[("layers", layers), ("net", &format!("use crate::layers::Block as Block; {model}"))]);
    assert_eq!((together.errors().len(), apart.errors().len()), (0, 0));
    let statics = |made: &Expander| data(made).split("macro_rules").next().unwrap().to_string();
    assert_eq!(statics(&together), statics(&apart));
}
