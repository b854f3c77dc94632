//! Random numbers: a function of seed, step, place, iteration and element.

use super::shape::whole_shape;
use super::{Call, Kind, Row, needs};
use crate::diag::resolve as diag;
use crate::ir::{Graph, ValueId};
use crate::ops::composite;
use crate::resolve::Resolver;
use crate::resolve::value::Value;

pub(super) const ROWS: &[Row] = &[
    Row { name: "dropout", parameters: &[needs("x", Kind::Float), needs("p", Kind::Number)], build: dropout },
    Row {
        name: "random_uniform",
        parameters: &[needs("shape", Kind::Sizes)],
        build: |cx, call| of_shape(cx, call, composite::random_uniform),
    },
    Row {
        name: "random_normal",
        parameters: &[needs("shape", Kind::Sizes)],
        build: |cx, call| of_shape(cx, call, composite::random_normal),
    },
];

impl Resolver<'_, '_> {
    /// The word that the random numbers of one more place of the entry begin with.
    fn next_random_state(&mut self) -> ValueId {
        self.places += 1;
        self.graph.random_state(self.places - 1)
    }
}

fn dropout<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (x, p) = (cx.float(call, 0)?, call.number(1, 0.0));
    if !(0.0..=1.0).contains(&p) {
        cx.report(call.place(1), diag::share(call.name, "p", p));
        return None;
    }
    let state = cx.next_random_state();
    Some(Value::Tensor(if p == 0.0 { x } else { composite::dropout(&mut cx.graph, x, state, p) }))
}

fn of_shape<'a>(
    cx: &mut Resolver<'a, '_>,
    call: &Call<'a>,
    build: fn(&mut Graph, ValueId, &meganeura_shaders::dim::Shape) -> ValueId,
) -> Option<Value<'a>> {
    let shape = whole_shape(cx, call, 0)?;
    let state = cx.next_random_state();
    Some(Value::Tensor(build(&mut cx.graph, state, &shape)))
}
