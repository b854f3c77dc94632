//! What people read.

use expect_test::expect;
use meganeura_shaders::dim::Dim;

use super::build::{Build, decoder, size};
use super::check::{compile, steps_of};
use crate::autodiff::Policy;
use crate::ir::{Graph, Origin};
use crate::lower::plain;
use crate::testing::training;

fn small() -> Graph {
    let mut g = Graph::new(Default::default());
    let rows = g.symbols.declare("rows", 2, 64, 2);
    let x = g.input("x", vec![rows, size(3)]);
    let w = g.param("blocks.{}.w", &[size(30)], &[size(3), size(3)]);
    g.origin = Origin { path: "embed".into(), what: "tanh".into(), ..Origin::default() };
    let x = g.tanh(x);
    g.origin.path = "blocks".into();
    let y = g.repeat(&size(30), false, &[x], &[w], |g, _, x, w| {
        g.origin = Origin {
            path: "blocks.{}.fc".into(),
            what: "linear".into(),
            rules: vec!["epilogue".into()],
            ..g.origin.clone()
        };
        let y = g.linear(x[0], w[0]);
        g.origin = Origin { what: "silu".into(), rules: vec![], backward: true, ..g.origin.clone() };
        let y = g.silu(y);
        (vec![g.add(x[0], y)], vec![])
    });
    g.result("y", y[0]);
    g
}

#[test]
fn a_table_names_kernels_layers_shapes_and_rules() {
    let graph = small();
    let mut schedule = compile(&graph);
    schedule.unfused = plain::steps(&graph);
    expect![[r#"
        rows in 2..=64 step 2
        step  kernel       what    layer         shape      rules
          0   pointwise    tanh    embed         [rows, 3]
              repeat 30
          1 |   contract   linear  blocks.{}.fc  [rows, 3]  epilogue
          2 |   pointwise  ∂ silu  blocks.{}.fc  [rows, 3]
          3 |   pointwise  ∂ silu  blocks.{}.fc  [rows, 3]
        91 steps, 91 dependent steps (91 unfused)
    "#]]
    .assert_eq(&schedule.to_string());
    let env = schedule.symbols.bind(&[10]).unwrap();
    expect![[r#"
        rows in 2..=64 step 2, here 10
        step  kernel       what    layer         shape    bytes  flop  rules
          0   pointwise    tanh    embed         [10, 3]    240   240
              repeat 30
          1 |   contract   linear  blocks.{}.fc  [10, 3]    276   180  epilogue
          2 |   pointwise  ∂ silu  blocks.{}.fc  [10, 3]    240   300
          3 |   pointwise  ∂ silu  blocks.{}.fc  [10, 3]    360    30
        91 steps, 91 dependent steps (91 unfused)
    "#]]
    .assert_eq(&schedule.table(&env).to_string());
}

#[test]
fn the_last_line_counts_the_launches_of_a_call() {
    let schedule = compile(&small());
    let plan = &schedule.plans[0];
    assert_eq!(plan.launches(&schedule), Dim::from(1 + 30 * 3));
    let steps = steps_of(&schedule);
    let in_body = steps[1..].iter().filter(|step| step.barrier).count() as i64;
    assert_eq!(plan.dependent(&schedule), Dim::from(1 + 30 * in_body));
    let text = schedule.to_string();
    assert_eq!(text.lines().last().unwrap(), format!("91 steps, {} dependent steps (0 unfused)", 1 + 30 * in_body));
}

#[test]
fn a_table_of_any_depth_counts_in_symbols_and_in_numbers() {
    let (graph, loss) = decoder(None);
    let graph = training(&graph, loss, Policy::default());
    let mut schedule = compile(&graph);
    schedule.unfused = plain::steps(&graph);
    let last = |text: String| text.lines().last().unwrap().to_string();
    assert!(last(schedule.to_string()).contains("·depth"), "{}", last(schedule.to_string()));
    let count = |depth: i64| {
        let env = schedule.symbols.bind(&[2, 3, depth]).unwrap();
        let text = last(schedule.table(&env).to_string());
        text.split(' ').next().unwrap().parse::<i64>().unwrap()
    };
    assert!(count(3) - count(2) == count(2) - count(1) && count(2) > count(1));
}
