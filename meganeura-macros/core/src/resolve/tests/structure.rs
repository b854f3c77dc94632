//! Loops, constants and sharing, as graphs show them.

use expect_test::expect;

use super::clean;

fn blocks(depth: usize) -> String {
    format!(
        "layer Mlp<dim, ffn> {{
            gate: Linear<dim, ffn, bias = false>,
            up: Linear<dim, ffn, bias = false>,
            down: Linear<ffn, dim, bias = false>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] {{ down(silu(gate(x)) * up(x)) }}
        }}
        layer Block<dim, ffn> {{
            norm: RmsNorm<dim>,
            mlp: Mlp<dim, ffn>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] {{ x + mlp(norm(x)) }}
        }}
        pub model Net<dim = 8, depth = {depth}, batch in 1..=64> {{
            blocks: [Block<dim, 2 * dim>; depth],
            norm: LayerNorm<dim>,
            pub fn run(x: f32[batch, dim]) -> f32[batch, dim] {{
                let mut x = x;
                for block in blocks {{ x = block(x); }}
                norm(x)
            }}
        }}"
    )
}

#[test]
fn a_loop_over_layers_is_one_repeat() {
    let resolved = clean(&blocks(3));
    expect![[r#"
        %0: f32[batch, 8] = read x()   # 
        %25: f32[3, 8] = read blocks.{}.norm.weight()   # blocks.norm
        %28: f32[3, 16, 8] = read blocks.{}.mlp.gate.weight()   # blocks.mlp.gate
        %36: f32[3, 16, 8] = read blocks.{}.mlp.up.weight()   # blocks.mlp.up
        %41: f32[3, 8, 16] = read blocks.{}.mlp.down.weight()   # blocks.mlp.down
        %46: f32[batch, 8] = repeat 3 up(%0, %25, %28, %36, %41)   # 
          given %1: u32[], %2: f32[batch, 8], %26: f32[8], %29: f32[16, 8], %37: f32[16, 8], %42: f32[8, 16]
          %23: f32[batch, 8], %24: f32[batch, 1] = rms_norm(%2)   # blocks.norm
          %27: f32[batch, 8] = * Bin(Mul, 0, 1)(%23, %26)   # blocks.norm
          %30: f32[8, 16] = transpose(%29)   # blocks.mlp.gate
          %31: f32[batch, 16] = contract ij,jk->ik(%27, %30)   # blocks.mlp.gate
          %35: f32[batch, 16] = silu(%31)   # blocks.mlp
          %38: f32[8, 16] = transpose(%37)   # blocks.mlp.up
          %39: f32[batch, 16] = contract ij,jk->ik(%27, %38)   # blocks.mlp.up
          %40: f32[batch, 16] = * Bin(Mul, 0, 1)(%35, %39)   # blocks.mlp
          %43: f32[16, 8] = transpose(%42)   # blocks.mlp.down
          %44: f32[batch, 8] = contract ij,jk->ik(%40, %43)   # blocks.mlp.down
          %45: f32[batch, 8] = + Bin(Add, 0, 1)(%2, %44)   # blocks
          give %45
        %75: f32[batch, 8], %76: f32[batch, 1] = layer_norm(%46)   # norm
        %77: f32[8] = read norm.weight()   # norm
        %78: f32[batch, 8] = * Bin(Mul, 0, 1)(%75, %77)   # norm
        %79: f32[8] = read norm.bias()   # norm
        %80: f32[batch, 8] = + Bin(Add, 0, 1)(%78, %79)   # norm
        output run = %80
    "#]]
    .assert_eq(&resolved.entries[0].graph.to_string());
}

#[test]
fn depth_changes_numbers_and_nothing_else() {
    let numbers = |text: String, depth: usize| {
        text.replace(&format!("repeat {depth} "), "repeat D ").replace(&format!("f32[{depth}, "), "f32[D, ")
    };
    let graph = |depth: usize| numbers(clean(&blocks(depth)).entries[0].graph.to_string(), depth);
    assert_eq!(graph(3), graph(64));
    assert!(graph(64).contains("repeat D up"));
}

#[test]
fn what_a_loop_does_not_change_is_captured_and_a_loop_without_effect_is_gone() {
    let graph = |body: &str| {
        let text = format!(
            "layer Shift {{ param w: f32[4] = ones; fn forward(x: f32[n, 4]) -> f32[n, 4] {{ x + w }} }}
            model M<n in 1..=4, deep = false> {{
                shifts: [Shift; 5],
                pub fn f(x: f32[n, 4]) -> f32[n, 4] {{ let mut a = x; let mut b = relu(x); {body} a + b }}
            }}"
        );
        clean(&text).entries[0].graph.to_string()
    };
    expect![[r#"
        %0: f32[n, 4] = read x()   # 
        %1: f32[n, 4] = relu Un(Relu, 0)(%0)   # 
        %5: f32[5, 4] = read shifts.{}.w()   # shifts
        %9: f32[n, 4] = repeat 5 up(%0, %5, %1)   # 
          given %2: u32[], %3: f32[n, 4], %6: f32[4], %4: f32[n, 4]
          %7: f32[n, 4] = + Bin(Add, 0, 1)(%3, %6)   # shifts
          %8: f32[n, 4] = * Bin(Mul, 0, 1)(%7, %4)   # 
          give %8
        %10: f32[n, 4] = + Bin(Add, 0, 1)(%9, %1)   # 
        output f = %10
    "#]]
    .assert_eq(&graph("for s in shifts { a = s(a) * b; if deep { b = a; } }"));
    expect![[r#"
        %0: f32[n, 4] = read x()   # 
        %1: f32[n, 4] = relu Un(Relu, 0)(%0)   # 
        %3: f32[5, 4] = read shifts.{}.w()   # shifts
        %7: f32[n, 4] = + Bin(Add, 0, 1)(%0, %1)   # 
        output f = %7
    "#]]
    .assert_eq(&graph("for s in shifts { let c = s(a); }"));
}

#[test]
fn what_models_ignore_in_files_lies_below_their_members() {
    let resolved = clean(
        "#[ignore(\"extra.*\", \"b\")] model Inner { param w: f32[2] = ones; pub fn a(x: f32[2]) -> f32[2] { x * w } }
        #[ignore(\"own\")] model Other = Inner;
        #[ignore(\"outer.*\")] model Outer { one: Inner, #[name = \"\"] flat: Inner, many: [Other; 3],
            pub fn f(x: f32[2]) -> f32[2] { one.a(x) } }",
    );
    let expected = ["outer.*", "one.extra.*", "one.b", "extra.*", "b", "many.*.own", "many.*.extra.*", "many.*.b"];
    assert_eq!(resolved.model.ignored, expected);
    let (models, _) = super::read(
        "#[ignore(\"extra.*\")] model Inner { param w: f32[2] = ones; pub fn a(x: f32[2]) -> f32[2] { x * w } }
        #[ignore(\"own\")] model Other = Inner;",
    );
    assert_eq!(models[1].model.ignored, ["own", "extra.*"]);
}

#[test]
fn tensors_have_the_names_of_their_members_and_are_frozen_with_them() {
    let resolved = clean(
        "layer Inner { #[name = \"weight\"] param w: f32[2, 3] = xavier_normal; #[frozen] param b: f32[3] = zeros; }
        layer Outer { inner: [Inner; 4], #[name = \"\"] flat: Inner, }
        model M<n in 1..=4> {
            #[name = \"model.layers\"] outers: [Outer; 2],
            #[frozen] head: Linear<3, 4>,
            tail: Linear<3, 4, init = normal(0.02)>,
            param scale: f32 = constant(-0.5);
            #[train(params = \"*.weight\")] pub fn a(x: f32[n, 3]) -> f32 { sum(head(x) + tail(x)) * scale }
            #[train] pub fn b(x: f32[n, 3]) -> f32 { sum(tail(x)) }
            pub fn c(x: f32[n, 3]) -> f32[n, 4] { tail(x) }
        }",
    );
    let show = |tensor: &meganeura_shaders::schedule::Tensor| {
        let frozen = if tensor.trained { "" } else { " frozen" };
        format!("{} {:?} of {} {:?}{frozen}\n", tensor.name, tensor.shape, tensor.loops, tensor.init)
    };
    expect![[r#"
        model.layers.{}.inner.{}.weight [2, 4, 2, 3] of 2 XavierNormal
        model.layers.{}.inner.{}.b [2, 4, 3] of 2 Constant(0.0) frozen
        model.layers.{}.weight [2, 2, 3] of 1 XavierNormal
        model.layers.{}.b [2, 3] of 1 Constant(0.0) frozen
        head.weight [4, 3] of 0 Uniform(-0.5773502691896258, 0.5773502691896258) frozen
        head.bias [4] of 0 Uniform(-0.5773502691896258, 0.5773502691896258) frozen
        tail.weight [4, 3] of 0 Normal(0.02)
        tail.bias [4] of 0 Uniform(-0.5773502691896258, 0.5773502691896258)
        scale [] of 0 Constant(-0.5)
    "#]]
    .assert_eq(&resolved.model.tensors.iter().map(show).collect::<String>());
    let trained = |entry: &crate::resolve::Entry| {
        let stores: Vec<String> = entry.graph.stores.iter().map(|store| format!("{:?}", store.kind)).collect();
        format!("{}: {:?}\n    {}\n", entry.name, entry.train, stores.join(", "))
    };
    expect![[r#"
        a: Some(Train { params: Some("*.weight"), tensors: [0, 2, 6] })
            Argument(0), Tensor { index: 4, trained: false }, Tensor { index: 5, trained: false }, Tensor { index: 6, trained: true }, Tensor { index: 7, trained: false }, Tensor { index: 8, trained: false }
        b: Some(Train { params: None, tensors: [0, 2, 6, 7, 8] })
            Argument(0), Tensor { index: 6, trained: true }, Tensor { index: 7, trained: true }
        c: None
            Argument(0), Tensor { index: 6, trained: false }, Tensor { index: 7, trained: false }
    "#]].assert_eq(&resolved.entries.iter().map(trained).collect::<String>());
}

#[test]
fn nodes_know_their_member_statement_and_place() {
    let text = "layer Up<dim> {
            fc: Linear<dim, dim>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] {
                let y = fc(x);
                relu(y)
            }
        }
        model M<n in 1..=4> {
            ups: [Up<4>; 2],
            fn twice(x: f32[n, 4]) -> f32[n, 4] { x + x }
            pub fn f(x: f32[n, 4]) -> f32[n, 4] {
                let mut y = twice(x);
                for up in ups { y = up(y); }
                y * x
            }
        }";
    let resolved = clean(text);
    let graph = &resolved.entries[0].graph;
    let show = |node: &crate::ir::Node| {
        let start = node.origin.span.map(|span| resolved.spans[span.index()].span.start());
        let place = start.map_or(String::new(), |start| format!("{}:{}", start.line, start.column + 1));
        format!("{} in `{}` statement {} at {place}\n", node.op.name(), node.origin.path, node.origin.statement)
    };
    expect![[r#"
        read in `` statement 0 at 11:22
        + in `` statement 1 at 10:53
        read in `ups.fc` statement 1 at 4:25
        transpose in `ups.fc` statement 1 at 4:25
        contract in `ups.fc` statement 1 at 4:25
        read in `ups.fc` statement 1 at 4:25
        + in `ups.fc` statement 1 at 4:25
        relu in `ups` statement 2 at 5:17
        repeat in `` statement 2 at 13:17
        * in `` statement 4 at 14:19
    "#]]
    .assert_eq(&graph.nodes.iter().map(show).collect::<String>());
}

#[test]
fn arguments_say_what_a_call_must_pass() {
    let resolved = clean(
        "model M<n in 1..=64, h in 8..=32 step 8, unused in 1..=2> {
            fc: Linear<4, 10>,
            pub fn f(image: f32[n, h / 8, 4], label: u32[n, h / 8], pos: u32 in 0..16, t: f32) -> f32 {
                cross_entropy(fc(image) * t + f32(pos), label)
            }
            pub fn g(ids: u32[2 * n]) -> u32[2 * n] { ids + 1 }
        }",
    );
    let mut text = String::new();
    for entry in &resolved.entries {
        let symbols = &entry.graph.symbols;
        text += &format!(
            "{} -> {}\n",
            entry.name,
            crate::ops::show_types(&entry.results.iter().collect::<Vec<_>>(), symbols)
        );
        for bounds in symbols.declared() {
            text += &format!("    {} in {}..={} step {}\n", bounds.name, bounds.low, bounds.high, bounds.step);
        }
        for (argument, store) in entry.arguments.iter().zip(&entry.graph.stores) {
            let ty = crate::ops::show_types(&[&argument.ty], symbols);
            let dimension = argument.dimension.as_ref().map(|dim| symbols.show(dim));
            let below = store.below.as_ref().map(|below| symbols.show(below));
            text += &format!("    {}: {ty} dimension {dimension:?} below {below:?}\n", argument.name);
        }
    }
    expect![[r#"
        f -> f32[]
            n in 1..=64 step 1
            h in 8..=32 step 8
            pos in 0..=15 step 1
            image: f32[n, h/8, 4] dimension None below None
            label: u32[n, h/8] dimension None below Some("10")
            pos: u32[] dimension Some("pos") below None
            t: f32[] dimension None below None
        g -> u32[2·n]
            n in 1..=64 step 1
            ids: u32[2·n] dimension None below None
    "#]]
    .assert_eq(&text);
}

#[test]
fn two_resolutions_give_the_same_text() {
    let text = |depth| {
        let resolved = clean(&blocks(depth));
        format!("{:?} {}", resolved.model, resolved.entries[0].graph)
    };
    let first = text(7);
    text(2);
    assert_eq!(first, text(7));
}

#[test]
fn nesting_has_a_limit_that_a_small_stack_survives() {
    let chain: String = (0..300).map(|k| format!("fn f{k}(x: f32[n]) -> f32[n] {{ relu(f{}(x)) }}\n", k + 1)).collect();
    let text = format!(
        "model M<n in 1..=4> {{ {chain} fn f300(x: f32[n]) -> f32[n] {{ x }} pub fn run(x: f32[n]) -> f32[n] {{ f0(x) }} }}"
    );
    let found = super::mistakes(&text);
    assert!(found.contains("more than 200 expressions and calls inside each other"), "{found}");
    assert_eq!(found.lines().count(), 1, "{found}");
    let deep = format!("{}x{}{}", "relu(".repeat(60), " + x".repeat(120), ")".repeat(60));
    clean(&format!("model M<n in 1..=4> {{ pub fn run(x: f32[n]) -> f32[n] {{ {deep} }} }}"));
}

#[test]
fn work_that_doubles_with_each_line_has_limits() {
    let calls: String =
        (0..40).map(|k| format!("fn f{k}(x: f32[n]) -> f32[n] {{ f{0}(x) + f{0}(x) }}\n", k + 1)).collect();
    let found = super::mistakes(&format!(
        "model M<n in 1..=4> {{ {calls} fn f40(x: f32[n]) -> f32[n] {{ x }} pub fn run(x: f32[n]) -> f32[n] {{ f0(x) }} }}"
    ));
    assert!(found.contains("more than 20000 calls in one entry"), "{found}");
    let layers: String = (0..40).map(|k| format!("layer L{k} {{ a: L{0}, b: L{0}, }}\n", k + 1)).collect();
    let found = super::mistakes(&format!("{layers} layer L40 {{ param w: f32[1] = ones; }} model M {{ l: L0, }}"));
    assert!(found.contains("more than 20000 layers in one model"), "{found}");
    assert_eq!(found.lines().count(), 1, "{found}");
}
