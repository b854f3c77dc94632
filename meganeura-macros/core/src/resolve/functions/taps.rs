//! `tap(x)`: the value itself, and one more result of the traced entry.

use super::{Call, Kind, Row, needs};
use crate::ir::ValueId;
use crate::resolve::Resolver;
use crate::resolve::instance::join;
use crate::resolve::value::{LoopId, Value};
use crate::syntax::{Expr, ExprKind};

pub(super) const ROWS: &[Row] = &[Row { name: "tap", parameters: &[needs("x", Kind::Any)], build: tap }];

/// A value that is looked at, inside of the loops that it was made in.
pub(in crate::resolve) struct Tap {
    pub(in crate::resolve) path: String,
    pub(in crate::resolve) value: ValueId,
    pub(in crate::resolve) loops: Vec<LoopId>,
}

fn tap<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let (value, source) = call.operand(0)?;
    let Value::Tensor(id) = value else { return Some(value) };
    let name = match source {
        crate::resolve::describe::Source::Expr(expr) => named(expr),
        crate::resolve::describe::Source::Name(name) => Some(name.name.clone()),
    };
    let path = join(&cx.frame().layer.instance.member_path, &name.unwrap_or_else(|| "value".into()));
    let same = cx.taps.iter().filter(|tap| tap.path == path || tap.path.strip_prefix(&path).is_some_and(is_number));
    let path = match same.count() {
        0 => path,
        earlier => format!("{path}.{}", earlier + 1),
    };
    let loops = cx.loops.iter().map(|open| open.id).collect();
    cx.taps.push(Tap { path, value: id, loops });
    Some(Value::Tensor(id))
}

fn is_number(rest: &str) -> bool {
    rest.strip_prefix('.').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// What a value is called: its own name, or that of the function or layer that makes it.
fn named(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Name(name) | ExprKind::Method(_, name, _) | ExprKind::Field(_, name) => Some(name.name.clone()),
        ExprKind::Call(callee, _) => named(callee),
        ExprKind::Index(base, _) => named(base),
        _ => None,
    }
}
