//! Each form of a member, and what a broken one leaves.

use super::{clean_members, definition, function, read, show};
use crate::syntax::MemberKind;
use expect_test::expect;

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(show::members(&clean_members(text)), *expected, "{text}");
    }
}

#[test]
fn constants_and_layers() {
    check(&[
        ("let head = dim / heads;", "let head = (dim / heads)"),
        ("let small = dim < 64,", "let small = (dim < 64)"),
        ("fc1: Linear<784, hidden>,", "fc1: Linear<784, hidden>"),
        ("fc1: Linear<784, 10, bias = false>", "fc1: Linear<784, 10, bias = false>"),
        ("c: Conv2d<3, 2 * c, [3, 5], padding = [1, 2]>", "c: Conv2d<3, (2 * c), array[3, 5], padding = array[1, 2]>"),
        ("l: Linear<a, b, init = normal(0.02)>", "l: Linear<a, b, init = call normal(0.02)>"),
        ("l: Linear<a, b,>", "l: Linear<a, b>"),
        ("l: Linear<a, b=-1>", "l: Linear<a, b = -1>"),
        ("act: Relu", "act: Relu<>"),
        ("blocks: [Block<dim, heads>; depth],", "blocks: [Block<dim, heads>; depth]"),
        ("blocks: [Block; 2 * n]", "blocks: [Block<>; (2 * n)]"),
        ("l: Linear<in, type>", "l: Linear<in, type>"),
    ]);
}

#[test]
fn what_a_macro_took_as_a_type_is_a_layer() {
    use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
    let layer = TokenTree::Group(Group::new(Delimiter::None, "Linear<3, n - 1>".parse().unwrap()));
    let array: TokenStream = [layer.clone()].into_iter().chain("; 3".parse::<TokenStream>().unwrap()).collect();
    let text: TokenStream = "a:".parse().unwrap();
    let more: TokenStream = ", b:".parse().unwrap();
    let array = TokenTree::Group(Group::new(Delimiter::Bracket, array));
    let members = text.into_iter().chain([layer]).chain(more).chain([array]).collect();
    let item: TokenStream = "layer L".parse().unwrap();
    let whole = item.into_iter().chain([TokenTree::Group(Group::new(Delimiter::Brace, members))]).collect();
    let mut errors = crate::errors::Errors::new();
    let source = crate::syntax::parse(whole, &mut errors);
    assert_eq!(errors.render(), "");
    let shown = show::members(&definition(&source.items[0]).members);
    assert_eq!(shown, "a: Linear<3, (n - 1)>, b: [Linear<3, (n - 1)>; 3]");
}

#[test]
fn members_end_with_commas_or_semicolons_or_braces() {
    check(&[(
        "let a = 1, b: B<a>; fn f() {} fn g() {}, c: C; if a { d: D } e: E<1>; fn h() {};",
        "let a = 1, b: B<a>, fn f(), fn g(), c: C<>, if a { d: D<> }, e: E<1>, fn h()",
    )]);
}

#[test]
fn keywords_are_member_names_where_a_colon_follows() {
    check(&[(
        "state: A, param: B, buffer: C, let: D, fn: E, if: F, for: G, pub: H, type: I, r#match: J",
        "state: A<>, param: B<>, buffer: C<>, let: D<>, fn: E<>, if: F<>, for: G<>, pub: H<>, type: I<>, match: J<>",
    )]);
}

#[test]
fn tensors() {
    check(&[
        ("param scale: f32[dim] = ones;", "param scale: f32[dim] = ones"),
        ("param w: f32[out, in / groups] = uniform(-a, a),", "param w: f32[out, (in / groups)] = call uniform(-a, a)"),
        ("param temperature: f32 = constant(1);", "param temperature: f32 = call constant(1)"),
        ("buffer mean: f32[dim] = zeros;", "buffer mean: f32[dim] = zeros"),
        ("state keys: f32[max_seq, kv_heads, head];", "state keys: f32[max_seq, kv_heads, head]"),
        ("state state: u32[1]", "state state: u32[1]"),
    ]);
}

#[test]
fn conditions() {
    check(&[
        ("if bias { param b: f32[out] = zeros; }", "if bias { param b: f32[out] = zeros }"),
        (
            "if kind == 1 { a: A } else if kind == 2 { a: B } else { a: C, b: D }",
            "if (kind == 1) { a: A<> }, if (kind == 2) { a: B<> } else { a: C<>, b: D<> }",
        ),
        ("if !bias { } fn f() {}", "if !bias {  }, fn f()"),
    ]);
}

#[test]
fn functions_and_types() {
    check(&[
        ("fn forward(x: f32[.., dim]) -> f32[.., dim] { x }", "fn forward(x: f32[.. dim]) -> f32[.. dim]"),
        ("fn f(x: f32[..]) -> f32 { x }", "fn f(x: f32[.. ]) -> f32"),
        (
            "pub fn f(a: u32[seq], b: i32[..], c: u8[2, 3], d: bool[n],) -> bool { a }",
            "pub fn f(a: u32[seq], b: i32[.. ], c: u8[2, 3], d: bool[n]) -> bool",
        ),
        ("fn next(pos: u32 in 0..max_seq) -> f32[vocab] { x }", "fn next(pos: u32 in 0..max_seq) -> f32[vocab]"),
        ("fn next(pos: u32 in 1..=8) { }", "fn next(pos: u32 in 1..=8)"),
        (
            "fn f(x: (f32, f32[n])) -> (f32, (u32, f32[batch])) { x }",
            "fn f(x: (f32, f32[n])) -> (f32, (u32, f32[batch]))",
        ),
        ("fn f(x: f32[2 * seq + 1, h / 2]) { }", "fn f(x: f32[((2 * seq) + 1), (h / 2)])"),
    ]);
}

#[test]
fn attributes_are_kept_with_their_values() {
    let members = clean_members(
        "/// Docs.\n #[name = \"model.layers\"] #[frozen] #[store(q8_0)] #[precision(f16)] #[checkpoint] a: A,
         fn f() {}",
    );
    let a = &members[0].attributes;
    assert!(a.docs.to_string().contains("Docs."));
    assert_eq!(a.name.as_ref().unwrap().value, "model.layers");
    assert_eq!(a.store.as_ref().unwrap().name, "q8_0");
    assert_eq!(a.precision.as_ref().unwrap().name, "f16");
    assert!(a.frozen.is_some() && a.checkpoint.is_some() && a.train.is_none());
}

#[test]
fn training_entries_keep_their_parameters() {
    let source = super::clean(
        "#[ignore(\"pooler.*\", \"a\")] #[ignore(\"b\")] model M {
            #[train(params = \"disc.*\")] pub fn d() -> f32 { x } #[train] pub fn g() -> f32 { x } pub fn h() { x } }",
    );
    let ignored: Vec<_> = source.items[0].attributes.ignore.iter().map(|text| text.value.as_str()).collect();
    assert_eq!(ignored, ["pooler.*", "a", "b"]);
    let trains: Vec<_> = definition(&source.items[0]).members.iter().map(|member| &member.attributes.train).collect();
    assert_eq!(trains[0].as_ref().unwrap().params.as_ref().unwrap().value, "disc.*");
    assert!(trains[1].as_ref().unwrap().params.is_none());
    assert!(trains[2].is_none());
}

#[test]
fn a_broken_member_is_poison_under_its_name_and_the_others_stay() {
    let texts = [
        "a: A<1 2, b = 3>, c: C",
        "a: A<1, c: C<2>, d: D",
        "a: A<1> c: C<2>",
        "a A, c: C",
        "param w: f32[3] = ?; c: C",
        "let a = 1 2, c: C",
        "let = 1, c: C",
        "self: A<1, 2>, c: C",
        "fn (x: f32) {} c: C",
        "fn f { x } c: C",
        "if a b { d: D } c: C",
        "bs: [B<1>, 3], c: C",
        "a: A 1, n, b = 3>, c: C",
        "a: A<1, b = 2, state k: f32[3]; c: C",
        "a: A<1, state k: f32[3]; c: C",
        "pub f(x: f32) -> f32 { x } c: C",
        "f(x: f32) { x } c: C",
        "fn f(x: f32 y: f32, z: f32) { x }",
        "fn f(x y, z: f32) { x }",
        "if (a) { b: B } c: C",
        "#[frozen] pub a: A, c: C",
    ];
    let mut table = String::new();
    for text in texts {
        let (source, errors) = read(&format!("layer L {{\n{text} }}"));
        assert_eq!(source.items[0].broken, !errors.is_empty(), "{text}");
        let members = show::members(&definition(&source.items[0]).members);
        table += &format!("{text}\n{errors}    {members}\n");
    }
    expect![[r#"
        a: A<1 2, b = 3>, c: C
        2:8: expected `,` or `>`, found `2`
            POISON a, c: C<>
        a: A<1, c: C<2>, d: D
        2:10: expected `,` or `>`, found `:`
            POISON a, c: C<2>, d: D<>
        a: A<1> c: C<2>
        2:9: expected `,` or `;` after `a`, found `c`
            a: A<1>, c: C<2>
        a A, c: C
        2:3: expected `:` and a layer after `a`, found `A`
            POISON a, c: C<>
        param w: f32[3] = ?; c: C
        2:19: expected a value, found `?`
            POISON w, c: C<>
        let a = 1 2, c: C
        2:11: expected `,` or `;` after `a`, found `2`
            POISON a, c: C<>
        let = 1, c: C
        2:5: expected the name of a constant, found `=`
            POISON ?, c: C<>
        self: A<1, 2>, c: C
        2:1: `self` cannot be a name
            POISON ?, c: C<>
        fn (x: f32) {} c: C
        2:4: expected the name of a function, found `(`
            POISON ?, c: C<>
        fn f { x } c: C
        2:6: expected `(` after `f`, found `{`
            POISON f, c: C<>
        if a b { d: D } c: C
        2:6: expected `{`, found `b`
            if POISON { d: D<> }, c: C<>
        bs: [B<1>, 3], c: C
        2:10: expected `;` and the length of the array, found `,`
            POISON bs, c: C<>
        a: A 1, n, b = 3>, c: C
        2:6: expected `,` or `;` after `a`, found `1`
            POISON a, c: C<>
        a: A<1, b = 2, state k: f32[3]; c: C
        2:16: positional arguments come before named ones
            POISON a, state k: f32[3], c: C<>
        a: A<1, state k: f32[3]; c: C
        2:15: expected `,` or `>`, found `k`
            POISON a, state k: f32[3], c: C<>
        pub f(x: f32) -> f32 { x } c: C
        2:5: expected `fn` before `f`
            pub fn f(x: f32) -> f32, c: C<>
        f(x: f32) { x } c: C
        2:1: expected `fn` before `f`
            fn f(x: f32), c: C<>
        fn f(x: f32 y: f32, z: f32) { x }
        2:13: expected `,` or `)`, found `y`
            fn f(x: f32, y: f32, z: f32)
        fn f(x y, z: f32) { x }
        2:8: expected `:` and the type of `x`, found `y`
            fn f(x: POISON, z: f32)
        if (a) { b: B } c: C
            if a { b: B<> }, c: C<>
        #[frozen] pub a: A, c: C
        2:15: only functions of a model are public: drop the `pub` before `a`
            a: A<>, c: C<>
    "#]]
    .assert_eq(&table);
}

#[test]
fn entries_keep_their_signatures_when_bodies_are_broken() {
    let (source, errors) = read(
        "model M { pub fn a(x: f32[n]) -> f32[n] { x ** 2 }
                   pub fn b(x: f33[n], y: u32 in 0.., z: f32) -> f32 { ? ; y }
                   pub fn c(x: f32) f32 { x } pub fn d(x: f32) -> f32; pub fn e(self, mut x: f32) { x } }",
    );
    let members = &definition(&source.items[0]).members;
    assert_eq!(
        show::members(members),
        "pub fn a(x: f32[n]) -> f32[n], pub fn b(x: POISON, y: u32 in POISON..POISON, z: f32) -> f32, \
         pub fn c(x: f32) -> POISON, pub fn d(x: f32) -> f32, pub fn e(x: f32)"
    );
    let entries: Vec<_> =
        definition(&source.items[0]).entries().iter().map(|(_, entry)| entry.name.name.clone()).collect();
    assert_eq!(entries, ["a", "b", "c", "d", "e"]);
    assert!(function(&members[0]).body.is_poison());
    assert_eq!(show::block(&function(&members[1]).body), "1: POISON(); 2: y");
    assert_eq!(show::block(&function(&members[2]).body), "1: x");
    assert!(members.iter().all(|member| matches!(member.kind, MemberKind::Function(_))));
    expect![[r#"
        1:45: a power is written `pow(a, b)`, `**` is not an operator
        2:32: unknown type `f33`, did you mean `f32`?
        2:53: expected a value, found `,`
        2:72: expected a value, found `?`
        3:37: expected `->` or `{`, found `f32`
        3:70: expected `{`, found `;`
        3:81: there is no `self`: members are used by their names
        3:87: parameters are not `mut`: write `let mut x = x;` inside
    "#]]
    .assert_eq(&errors);
}
