//! Functions of the language in the middle of a model: the value against a formula, the gradient against slopes, and
//! both again from the schedules, one kernel an operation and fused, whose texts compile.

mod arrange;
mod einsum;
mod elementwise;
mod losses;
mod order;
mod pick;
mod random;

use meganeura_shaders::generate::validate;
use meganeura_shaders::reference::Tensor;

use super::{clean, mistakes};
use crate::autodiff::Policy;
use crate::egraph::fuse;
use crate::interp::graph::run;
use crate::ir::Graph;
use crate::schedule::tests::check::{assert_means, compile, with_texts};
use crate::testing::{POLICIES, assert_close, bind, check_gradients, contents, training};

/// What a formula may look at: the stores of a model by name.
pub(super) struct Stores {
    names: Vec<String>,
    tensors: Vec<Tensor>,
}

impl Stores {
    /// An element; leading axes that the store lacks are left out, axes of size 1 stretch.
    fn at(&self, name: &str, index: &[i64]) -> f64 {
        let tensor = self.tensor(name);
        let own = &index[index.len() - tensor.shape.len()..];
        let place = |at: i64, (i, size): (&i64, &i64)| at * size + if *size == 1 { 0 } else { *i };
        tensor.data[own.iter().zip(&tensor.shape).fold(0, place) as usize]
    }

    fn tensor(&self, name: &str) -> &Tensor {
        let position = self.names.iter().position(|known| known == name);
        &self.tensors[position.unwrap_or_else(|| panic!("no store `{name}`"))]
    }
}

const TENSORS: &str = "param p: f32[3, 5] = zeros; param q: f32[5] = zeros; param r: f32[2, 3, 5] = zeros;";
const ARGUMENTS: &str =
    "x: f32[n, 3, 5], m: f32[n, 5], ids: u32[n], mask: bool[n, 5], bytes: u8[n, 5], whole: i32[n, 5]";

/// The sizes of n that everything is tried at.
const SIZES: [i64; 2] = [4, 1];

fn contents_of(graph: &Graph, n: i64) -> Stores {
    let names = graph.stores.iter().map(|store| store.name.clone()).collect();
    Stores { names, tensors: contents(graph, &bind(graph, &[n]), 7) }
}

/// Both ways to a schedule mean what the graph means; the shaders compile.
fn check_schedules(what: &str, graph: &Graph) {
    let fused = fuse(graph).unwrap_or_else(|limit| panic!("{what}: {limit}"));
    let (fused, texts) = with_texts(&fused);
    for text in texts.list() {
        validate(text).unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
    }
    let plain = compile(graph);
    for n in SIZES {
        assert_means(&fused, graph, &[n], 7, 1e-8);
        assert_means(&plain, graph, &[n], 7, 1e-8);
    }
}

/// A shape, and what stands at each index of it.
type Expected<'a> = (&'a [i64], &'a dyn Fn(&Stores, &[i64]) -> f64);

/// The values of `body`, a tuple of results of these types, by its formulas: of an index and the stores.
pub(super) fn values(types: &str, body: &str, formulas: &[Expected<'_>]) {
    let types = if formulas.len() == 1 { types.into() } else { format!("({types})") };
    let model = format!("model M<n in 1..=64> {{ {TENSORS} pub fn f({ARGUMENTS}) -> {types} {{ {body} }} }}");
    let resolved = clean(&model);
    let graph = &resolved.entries[0].graph;
    let stores = contents_of(graph, 4);
    let found = run(graph, &bind(graph, &[4]), &stores.tensors);
    assert_eq!(found.len(), formulas.len(), "{body}");
    for (k, (found, (shape, formula))) in found.iter().zip(formulas).enumerate() {
        let expected = Tensor::from_fn(shape, |index| formula(&stores, index));
        assert_eq!(found.shape, *shape, "result {k} of {body}");
        assert_close(&format!("result {k} of {body}"), &found.data, &expected.data, 1e-11);
    }
    check_schedules(body, graph);
}

/// The gradients of a loss over `value`, an expression of an f32 tensor, in the middle of a graph: it is scaled, used
/// beside its square, and the tensors that it reads are used a second time.
pub(super) fn gradients(value: &str) {
    let (before, value) = value.rsplit_once(';').map_or((String::new(), value), |(a, b)| (format!("{a};"), b));
    gradients_of(&format!("{before} let y = {value}; mean(y * 0.7 + 0.3 * y * y * cos(y))"));
}

/// The same for an expression of the loss.
pub(super) fn gradients_of(loss: &str) {
    let (before, last) = loss.rsplit_once(';').map_or((String::new(), loss), |(a, b)| (format!("{a};"), b));
    let model = format!(
        "model M<n in 1..=64> {{ {TENSORS} #[train] pub fn f({ARGUMENTS}) -> f32 {{
            {before}
            let inner = {last};
            let extra = sum(p * p) + sum(q * q * 0.5) + sum(r * r) * 0.25;
            2.5 * inner + 0.11 * extra
        }} }}"
    );
    let resolved = clean(&model);
    let graph = &resolved.entries[0].graph;
    let loss_value = graph.outputs[0].value;
    for policy in POLICIES {
        check_gradients(graph, loss_value, &[4], 7, policy);
    }
    check_schedules(loss, &training(graph, loss_value, Policy::Contractions));
}

/// What is wrong with an expression, without its place.
pub(super) fn mistake(value: &str) -> String {
    let model = format!("model M<n in 1..=64> {{ {TENSORS} pub fn f({ARGUMENTS}) -> f32[n] {{ {value} }} }}");
    let text = mistakes(&model);
    text.lines().map(|line| line.split_once(": ").map_or(line, |(_, message)| message)).collect::<Vec<_>>().join("\n")
}
