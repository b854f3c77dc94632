#![allow(clippy::unwrap_used)]

use meganeura_shaders::dim::{Dim, Shape, Symbols};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{DType, Instr};

use super::normalise;
use crate::ir::{Graph, Type, ValueId};
use crate::ops::{self, Op, composite};
use crate::testing::{assert_close, outputs, result, trained};

/// A graph over the dimension m with one input of the given shape, where 0 stands for m.
fn of(shape: &[i64], body: impl FnOnce(&mut Graph, &Dim, ValueId) -> ValueId) -> Graph {
    let mut symbols = Symbols::default();
    let m = symbols.declare("m", 1, 50, 1);
    let mut graph = Graph::new(symbols);
    let shape: Shape = shape.iter().map(|n| if *n == 0 { m.clone() } else { Dim::from(*n) }).collect();
    let x = graph.argument(0, "x", Type::float(shape));
    let y = body(&mut graph, &m, x);
    result(&mut graph, "y", y);
    graph
}

/// The normal form, after a look at its values.
fn checked(what: &str, graph: &Graph) -> Graph {
    let normal = normalise(graph);
    normal.verify().unwrap();
    for m in [1, 3] {
        let (expected, found) = (outputs(graph, &[m], 5), outputs(&normal, &[m], 5));
        assert_eq!(expected.len(), found.len());
        for ((name, expected), (_, found)) in expected.iter().zip(found) {
            assert_eq!(expected.shape, found.shape, "{what}: {name}");
            assert_close(what, &found.data, &expected.data, 1e-9);
        }
    }
    normal
}

fn count(graph: &Graph, is: impl Fn(&Op) -> bool) -> usize {
    graph.nodes.iter().filter(|node| is(&node.op)).count()
}

fn is_broadcast(op: &Op) -> bool {
    matches!(op, Op::Broadcast(_))
}

#[test]
fn sums_over_every_set_of_axes_are_rows_and_columns() {
    let shapes: [&[i64]; 6] = [&[5], &[0, 4], &[2, 0, 3], &[2, 3, 0, 4], &[1, 3, 1, 2], &[0, 1, 2, 1]];
    for shape in shapes {
        for set in 0u32..1 << shape.len() {
            let axes: Vec<u8> = (0..shape.len() as u8).filter(|axis| set >> axis & 1 == 1).collect();
            let what = format!("sum of {shape:?} over {axes:?}");
            let graph = of(shape, |g, _, x| g.sum(x, &axes));
            let normal = checked(&what, &graph);
            assert_eq!(count(&normal, |op| matches!(op, Op::Sum(_))), 0, "{what}");
            let begins_or_ends = axes.len() < 2 || axes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            if begins_or_ends && (axes.first() == Some(&0) || axes.last() == Some(&(shape.len() as u8 - 1))) {
                assert_eq!(count(&normal, |op| matches!(op, Op::Transpose(_))), 0, "{what}");
            }
        }
    }
}

#[test]
fn a_repeated_axis_is_a_factor_of_its_sum() {
    let graph = of(&[0, 1], |g, m, x| {
        let wide = g.broadcast(x, &vec![7.into(), m.clone(), 4.into()]);
        g.sum(wide, &[0, 2])
    });
    let normal = checked("repeated", &graph);
    assert_eq!(count(&normal, is_broadcast), 0);
    let counted = of(&[3], |g, m, x| {
        let wide = g.broadcast(x, &vec![m.clone(), 3.into()]);
        g.sum(wide, &[0])
    });
    assert_eq!(count(&checked("by a dimension", &counted), is_broadcast), 0);
    // Truncation and wrapping make integers another matter: they are summed as they are.
    let integers = of(&[3], |g, _, x| {
        let x = g.cast(DType::I32, x);
        let wide = g.broadcast(x, &vec![2.into(), 3.into()]);
        let sum = g.sum(wide, &[0]);
        g.cast(DType::F32, sum)
    });
    assert_eq!(count(&checked("integers", &integers), is_broadcast), 1);
}

#[test]
fn readers_that_broadcast_by_themselves_read_what_is_stored() {
    let graph = of(&[0, 3], |g, m, x| {
        let row = trained(g, "row", &[], &[3.into()]);
        let wide = g.broadcast(row, &vec![m.clone(), 3.into()]);
        let bent = g.un(Un::Tanh, wide);
        let max = g.row_max(bent);
        let sum = g.add(bent, max);
        g.mul(sum, x)
    });
    assert_eq!(count(&checked("pointwise", &graph), is_broadcast), 0);
    // A product needs its sides stored, and so does whoever asks for an index.
    let product = of(&[0, 3], |g, m, x| {
        let row = trained(g, "row", &[], &[3.into()]);
        let wide = g.broadcast(row, &vec![m.clone(), 3.into()]);
        let spec = meganeura_shaders::kernel::Spec::parse("mk,nk->mn").unwrap();
        g.emit(Op::Contract(ops::Contract { spec }), &[x, wide])
    });
    assert_eq!(count(&checked("product", &product), is_broadcast), 1);
    let index = of(&[1, 3], |g, m, x| {
        let wide = g.broadcast(x, &vec![m.clone(), 3.into()]);
        let index = g.index(1, wide);
        let index = g.cast(DType::F32, index);
        g.mul(index, wide)
    });
    assert_eq!(count(&checked("index", &index), is_broadcast), 1);
}

#[test]
fn views_of_repeated_values_are_repeated_views() {
    let turned = of(&[3], |g, m, x| {
        let wide = g.broadcast(x, &vec![m.clone(), 2.into(), 3.into()]);
        let turned = g.transpose(wide, &[2, 0, 1]);
        let sliced = g.emit(Op::Slice(ops::Slice { axis: 2, from: 1.into(), to: 2.into() }), &[turned]);
        let part = g.emit(Op::Slice(ops::Slice { axis: 0, from: 1.into(), to: 3.into() }), &[sliced]);
        let other = trained(g, "w", &[], &[2.into(), 1.into(), 1.into()]);
        g.mul(part, other)
    });
    let normal = checked("views", &turned);
    // Only the result, which is as large as it is said to be, is repeated.
    assert_eq!(count(&normal, is_broadcast), 1);
    let padded = of(&[1, 3], |g, m, x| {
        let wide = g.broadcast(x, &vec![m.clone(), 3.into()]);
        let pad = g.emit(Op::Pad(ops::Pad { axis: 1, before: 1.into(), total: 5.into() }), &[wide]);
        g.reshape(pad, vec![&Dim::from(5) * m])
    });
    checked("pad", &padded);
}

#[test]
fn constants_stand_where_they_are_read() {
    let graph = of(&[0, 3], |g, m, x| {
        let (half, size) = (g.constant(0.5), g.extent(m));
        let zeros = g.fill(0.0, &vec![m.clone(), 3.into()]);
        let results = g.repeat(&2.into(), false, &[x], &[], |g, _, x, _| {
            let y = g.mul(x[0], half);
            let y = g.div(y, size);
            (vec![g.add(y, zeros)], vec![])
        });
        results[0]
    });
    let normal = checked("captured", &graph);
    let Some(Op::Repeat(repeat)) = normal.nodes.iter().map(|n| &n.op).find(|op| matches!(op, Op::Repeat(_))) else {
        return assert_eq!(0, 1, "the loop stays");
    };
    let captured = normal.block(repeat.body).args.len() - 1 - repeat.carried - repeat.stacked;
    assert_eq!(captured, 0, "{normal}");
    assert_eq!(count(&normal, |op| matches!(op, Op::Instr(Instr::Bin(Bin::Add, ..)))), 0, "adding zero is nothing");
}

#[test]
fn seeds_of_gradients_leave_nothing_behind() {
    let graph = of(&[0, 3], |g, m, x| {
        let one = g.fill(1.0, &vec![m.clone(), 3.into()]);
        let y = g.mul(one, x);
        let y = g.with_const(Bin::Div, y, 1.0);
        let two = g.constant(2.0);
        let eight = g.bin(Bin::Pow, two, two);
        let eight = g.with_const(Bin::Mul, eight, 2.0);
        g.mul(y, eight)
    });
    let normal = checked("seeds", &graph);
    assert_eq!(count(&normal, |op| matches!(op, Op::Instr(Instr::Bin(..)))), 1, "{normal}");
}

#[test]
fn composites_are_gone_and_their_nodes_belong_to_the_call() {
    let graph = of(&[0, 3], |g, _, x| {
        g.origin.path = "net.act".into();
        let y = composite::gelu(g, x);
        g.origin.path = "net.out".into();
        composite::softmax(g, y)
    });
    let normal = checked("composites", &graph);
    assert_eq!(count(&normal, |op| matches!(op, Op::Call(_))), 0);
    let whats: std::collections::BTreeSet<(&str, &str)> =
        normal.nodes.iter().map(|n| (n.origin.path.as_str(), n.origin.what.as_str())).collect();
    assert_eq!(whats.into_iter().collect::<Vec<_>>(), [("", "read"), ("net.act", "gelu"), ("net.out", "softmax")]);
}
