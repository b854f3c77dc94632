//! Buffers that training steps change, and values that are tapped.

use expect_test::expect;
use meganeura_shaders::reference::Tensor;
use meganeura_shaders::schedule::Role;

use super::meaning::{agree, entries};
use super::{clean, in_source};
use crate::autodiff::Policy;
use crate::interp::graph::run;
use crate::ir::Graph;
use crate::resolve::Entry;
use crate::testing::{assert_close, bind, check_gradients, contents, training};

/// The new value of a tensor after a step, and the contents of all stores by name; every meaning of the step agrees.
fn step(entry: &Entry, dims: &[i64], index: usize) -> (Tensor, impl Fn(&str, &[i64]) -> f64 + use<>) {
    let graph: &Graph = entry.training.as_ref().expect("a step is not a call");
    let loss = graph.outputs[0].value;
    check_gradients(graph, loss, dims, 7, Policy::Contractions);
    let trained = training(graph, loss, Policy::Contractions);
    assert_eq!(
        trained.outputs.iter().filter(|output| matches!(output.role, Role::Update(_))).count(),
        2 - index.min(1)
    );
    let out = agree(&trained, dims);
    let at = trained.outputs.iter().position(|output| output.role == Role::Update(index)).unwrap();
    (out.results[at].clone(), move |name: &str, at: &[i64]| out.at(name, at))
}

#[test]
fn a_step_leaves_a_buffer_with_its_new_value_and_a_call_does_not() {
    let text = "model M<n in 1..=8> { buffer mean: f32[3] = zeros; buffer old: f32[3] = ones; param w: f32[3] = ones;
            fn centred(x: f32[n, 3]) -> f32[n, 3] {
                let before = mean;
                let own = sum(x * w, axis = 0) / f32(n);
                mean = 0.9 * mean + 0.1 * own;
                old = before;
                x - mean + 0.5 * old * before
            }
            pub fn f(x: f32[n, 3]) -> f32[n, 3] { centred(x) }
            #[train] pub fn loss(x: f32[n, 3]) -> f32 { sum(pow(centred(x), 2)) }
        }";
    let resolved = clean(text);
    assert!(resolved.model.tensors.iter().map(|tensor| tensor.trained).eq([false, false, true]));
    let called = agree(&resolved.entries[0].graph, &[4]);
    called.check(0, &[4, 3], |at| {
        let (mean, old) = (called.at("mean", &at[1..]), called.at("old", &at[1..]));
        called.at("x", at) - mean + 0.5 * old * mean
    });
    let (mean, at) = step(&resolved.entries[1], &[4], 0);
    let expected = Tensor::from_fn(&[3], |c| {
        let own: f64 = (0..4).map(|i| at("x", &[i, c[0]]) * at("w", c)).sum::<f64>() / 4.0;
        0.9 * at("mean", c) + 0.1 * own
    });
    assert_close("mean", &mean.data, &expected.data, 1e-9);
}

#[test]
fn buffers_that_swap_get_each_others_old_value() {
    let text = "model M<n in 1..=8> { buffer a: f32[3] = zeros; buffer b: f32[3] = ones; param w: f32[3] = ones;
            #[train] pub fn loss(x: f32[n, 3]) -> f32 { let t = a; a = b; b = t; sum(x * w * a) }
        }";
    let resolved = clean(text);
    let entry = &resolved.entries[0];
    let graph =
        training(entry.training.as_ref().unwrap(), entry.training.as_ref().unwrap().outputs[0].value, Policy::Store);
    let out = agree(&graph, &[2]);
    for (k, output) in graph.outputs.iter().enumerate() {
        if let Role::Update(index) = output.role {
            let other = ["b", "a"][index];
            assert_eq!(out.results[k].data, out.stores[other].data, "{other}");
        }
    }
}

#[test]
fn a_loop_writes_the_rows_that_it_owns() {
    let text = "layer Norm<dim> { buffer mean: f32[dim] = zeros; param w: f32[dim] = ones;
            fn forward(x: f32[n, dim]) -> f32[n, dim] {
                mean[..2] = 0.5 * mean[..2] + mean(x[.., ..2] * w[..2], axis = 0);
                x * w - mean
            } }
        layer Stage<dim> { norms: [Norm<dim>; 2], last: Norm<dim>,
            fn forward(x: f32[n, dim]) -> f32[n, dim] {
                let mut y = x;
                for norm in norms { y = tanh(norm(y)); }
                last(y)
            } }
        model M<n in 1..=8> { stages: [Stage<3>; 2], more: [Norm<3>; 3],
            #[train] pub fn loss(x: f32[n, 3]) -> f32 {
                let mut y = x;
                for stage in stages { y = stage(y); }
                y = more[1](more[-1](y));
                for stage in stages { for norm in stage.norms { y = y + norm.mean; } }
                for norm in more { y = y * norm.mean; }
                sum(pow(y, 2))
            }
        }"
    .replace("mean(x[.., ..2] * w[..2], axis = 0)", "sum(x[.., ..2] * w[..2], axis = 0) / f32(n)");
    let resolved = clean(&text);
    let entry = &resolved.entries[0];
    let graph = entry.training.as_ref().unwrap();
    let loss = graph.outputs[0].value;
    for policy in [Policy::Store, Policy::Contractions, Policy::Checkpoint] {
        check_gradients(graph, loss, &[3], 7, policy);
        agree(&training(graph, loss, policy), &[3]);
    }
    let env = bind(graph, &[3]);
    let stores = contents(graph, &env, 7);
    let results = run(graph, &env, &stores);
    let at = |name: &str, index: &[i64]| {
        let k = graph.stores.iter().position(|store| store.name == name).unwrap();
        let Tensor { shape, data } = &stores[k];
        data[shape.iter().zip(index).fold(0, |offset, (size, k)| offset * size + k) as usize]
    };
    // The stages by hand: what every norm is given, and what it leaves.
    let mut y: Vec<Vec<f64>> = (0..3).map(|i| (0..3).map(|c| at("x", &[i, c])).collect()).collect();
    let mut left: std::collections::BTreeMap<(String, Vec<i64>), Vec<f64>> = Default::default();
    let mut norm = |y: &mut Vec<Vec<f64>>, name: &str, index: &[i64], squash: bool| {
        let (mean, w) = (format!("{name}.mean"), format!("{name}.w"));
        let of = |name: &str, c: i64| at(name, &[index, &[c]].concat());
        let new: Vec<f64> = (0..3)
            .map(|c| match c {
                2 => of(&mean, 2),
                c => 0.5 * of(&mean, c) + y.iter().map(|row| row[c as usize] * of(&w, c)).sum::<f64>() / 3.0,
            })
            .collect();
        for row in y.iter_mut() {
            for c in 0..3 {
                row[c] = row[c] * of(&w, c as i64) - new[c];
                row[c] = if squash { row[c].tanh() } else { row[c] };
            }
        }
        left.insert((mean, index.to_vec()), new);
    };
    for s in 0..2 {
        (0..2).for_each(|k| norm(&mut y, "stages.{}.norms.{}", &[s, k], true));
        norm(&mut y, "stages.{}.last", &[s], false);
    }
    norm(&mut y, "more.{}", &[2], false);
    norm(&mut y, "more.{}", &[1], false);
    for (k, output) in graph.outputs.iter().enumerate() {
        let Role::Update(index) = output.role else { continue };
        let tensor = &resolved.model.tensors[index];
        let rows = &tensor.shape[..tensor.loops];
        let expected = Tensor::from_fn(&tensor.shape, |index| {
            let (row, c) = index.split_at(rows.len());
            let new = left.get(&(tensor.name.clone(), row.to_vec()));
            new.map_or_else(|| at(&tensor.name, index), |new| new[c[0] as usize])
        });
        assert_close(&tensor.name, &results[k].data, &expected.data, 1e-12);
    }
    assert_eq!(graph.outputs.iter().filter(|output| matches!(output.role, Role::Update(_))).count(), 3);
}

#[test]
fn a_state_is_written_by_every_call_and_what_is_read_back_has_gradients() {
    let text =
        "layer Cache<dim, max> { state keys: f32[max, dim]; state count: f32; proj: Linear<dim, dim, bias = false>,
            fn forward(x: f32[seq, dim], pos: u32) -> f32[pos + seq, dim] {
                keys[pos..pos + seq] = proj(x);
                count += 1;
                keys[..pos + seq] * count
            } }
        model M<seq in 1..=3> { caches: [Cache<2, 6>; 2],
            fn run(x: f32[seq, 2], pos: u32) -> f32[pos + seq, 2] {
                let mut y = x;
                let mut all = broadcast(x[0], [pos + seq, 2]);
                for cache in caches { let k = cache(y, pos); y = tanh(k[pos..]); all += k; }
                all
            }
            pub fn f(x: f32[seq, 2], pos: u32 in 0..3) -> f32[pos + seq, 2] { run(x, pos) }
            #[train] pub fn loss(x: f32[seq, 2], pos: u32 in 0..3) -> f32 { sum(pow(run(x, pos), 2)) }
        }";
    let resolved = clean(text);
    assert!(resolved.model.tensors.iter().map(|tensor| tensor.saved).eq([false, false, true]));
    assert!(resolved.entries.iter().all(|entry| entry.training.is_none()));
    for (seq, pos) in [(1, 0), (3, 2), (2, 1)] {
        let outs = entries(text, &[seq, pos]);
        let out = &outs[0];
        let keys = |layer: i64, i: i64, c: i64| -> f64 {
            fn keys(out: &super::meaning::Outcome, pos: i64, layer: i64, i: i64, c: i64) -> f64 {
                if i < pos {
                    return out.at("caches.{}.keys", &[layer, i, c]);
                }
                let given = |k: i64| match layer {
                    0 => out.at("x", &[i - pos, k]),
                    _ => (keys(out, pos, 0, i, k) * (out.at("caches.{}.count", &[0]) + 1.0)).tanh(),
                };
                (0..2).map(|k| out.at("caches.{}.proj.weight", &[layer, c, k]) * given(k)).sum()
            }
            keys(out, pos, layer, i, c)
        };
        let all = |i: i64, c: i64| {
            let own = |layer: i64| keys(layer, i, c) * (out.at("caches.{}.count", &[layer]) + 1.0);
            out.at("x", &[0, c]) + own(0) + own(1)
        };
        out.check(0, &[pos + seq, 2], |at| all(at[0], at[1]));
        // Outputs follow in order of tensors.
        out.check(1, &[2, 6, 2], |at| {
            let inside = (pos..pos + seq).contains(&at[1]);
            if inside { keys(at[0], at[1], at[2]) } else { out.at("caches.{}.keys", at) }
        });
        out.check(2, &[2], |at| out.at("caches.{}.count", at) + 1.0);
    }
}

#[test]
fn what_is_tapped_comes_out_by_its_path_with_an_axis_for_each_loop() {
    let text =
        "layer Up<dim> { fc: Linear<dim, dim>, fn forward(x: f32[n, dim]) -> f32[n, dim] { tap(tanh(tap(fc(x)))) } }
        model M<n in 1..=8> { ups: [Up<3>; 2], head: Up<3>,
            pub fn f(x: f32[n, 3]) -> f32[n, 3] {
                let mut y = tap(x);
                for up in ups { let z = tap(y * 2); y = up(z); for i in 0..3 { let k = tap(f32(i)); y += k; } }
                for i in 0..2 { tap(y * f32(i)).abs(); }
                let z = head(y);
                tap(z) + tap(z).relu()
            } }";
    let out = &entries(text, &[2])[0];
    let graph = &clean(text).entries[0].graph;
    let shown: String = graph
        .outputs
        .iter()
        .map(|output| {
            format!("{:?} {}: {}\n", output.role, output.name, graph.symbols.show_shape(graph.shape(output.value)))
        })
        .collect();
    expect![[r#"
        Result(0) f: [n, 3]
        Tap(0) x: [n, 3]
        Tap(1) value: [2, n, 3]
        Tap(2) ups.fc: [2, n, 3]
        Tap(3) ups.tanh: [2, n, 3]
        Tap(4) f32: [2, 3]
        Tap(5) value.2: [2, n, 3]
        Tap(6) head.fc: [n, 3]
        Tap(7) head.tanh: [n, 3]
        Tap(8) z: [n, 3]
        Tap(9) z.2: [n, 3]
    "#]]
    .assert_eq(&shown);
    assert_eq!(out.results[1].data, out.stores["x"].data);
}

#[test]
fn mistakes_of_buffers_name_them() {
    let model = |members: &str, body: &str| {
        format!(
            "layer Norm {{ buffer m: f32[3] = zeros; fn forward(x: f32[n, 3]) -> f32[n, 3] {{ m = x[0]; x - m }} }}
model M<n in 1..=8> {{ norm: Norm, norms: [Norm; 2], buffer b: f32[3] = zeros; param w: f32[3] = ones; {members}
fn g(x: f32[n, 3]) -> f32[n, 3] {{ {body} }}
#[train] pub fn loss(x: f32[n, 3]) -> f32 {{ sum(g(x)) }} }}"
        )
    };
    let texts = [
        model("", "b = x; x"),
        model("", "b = w > 0; x"),
        model("", "b = w; b = x[0]; x"),
        model("", "b[5] = 1; x"),
        model("", "for i in 0..3 { b = x[0] * f32(i); } x"),
        model("", "norm(norm(x))"),
        model("", "let mut y = x; for i in 0..2 { y = norm(y); } y"),
        model("", "let mut y = x; for norm in norms { y = norms[0](y); } y"),
        model("", "let mut y = norms[0](x); for norm in norms { y = norm(y); } y"),
        model("", "w = x[0]; x"),
        model("buffer c: u32 = zeros; buffer d: f32[n] = ones;", "x"),
        model("pub fn h(x: f32[n, 3]) -> f32[n, 3] { b = w; x + b }", "x"),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = in_source(&texts);
    let shown: String = found
        .lines()
        .filter(|line| line.starts_with("fn g") || line.starts_with("    "))
        .map(|line| format!("{}\n", line.strip_prefix("fn g(x: f32[n, 3]) -> f32[n, 3] { ").unwrap_or(line)))
        .collect();
    expect![[r#"
        b = x; x }
            3:39: the buffer `b` is f32[3], found f32[n, 3]
        b = w > 0; x }
            3:41: the buffer `b` is f32[3], found bool[3]
        b = w; b = x[0]; x }
            3:42: the buffer `b` is assigned twice in one call, first on line 3
        b[5] = 1; x }
            3:37: 5 lies outside of axis 0, which has 3
                   b: f32[3]
        for i in 0..3 { b = x[0] * f32(i); } x }
            3:51: a loop that does not own the buffer `b` would write it again and again: assign it after the loop
        norm(norm(x)) }
            1:80: the buffer `m` is assigned twice in one call, first on line 1
        let mut y = x; for i in 0..2 { y = norm(y); } y }
            1:80: a loop that does not own the buffer `m` would write it again and again: assign it after the loop
        let mut y = x; for norm in norms { y = norms[0](y); } y }
            1:80: a loop that does not own the buffer `m` would write it again and again: assign it after the loop
        let mut y = norms[0](x); for norm in norms { y = norm(y); } y }
            1:80: the buffer `m` is assigned twice in one call, first on line 1
        w = x[0]; x }
            3:35: `w` is a parameter of the model: training changes it, functions do not
        x }
            2:113: a `buffer` has elements of f32, found u32
            2:140: the sizes of `d` are constants, found the runtime dimension `n`
        x }
            2:141: a buffer changes in training steps only, and no `#[train]` reaches this assignment
    "#]]
    .assert_eq(&shown);
}
