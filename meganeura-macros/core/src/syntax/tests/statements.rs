//! Each form of a statement, with its number.

use super::{broken_body, clean_body, show};
use expect_test::expect;

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(show::block(&clean_body(text)), *expected, "{text}");
    }
}

#[test]
fn bindings() {
    check(&[
        ("let x = a;", "1: let x = a"),
        ("let mut x = a; x", "1: let mut x = a; 2: x"),
        ("let (a, mut b) = topk(x, 3);", "1: let (a, mut b) = call topk(x, 3)"),
        ("let mut = 3;", "1: let mut = 3"),
        ("let x=-1;", "1: let x = -1"),
    ]);
}

#[test]
fn assignments() {
    check(&[
        ("x = a;", "1: x = a"),
        ("x += a; x -= a; x *= a; x /= a; x @= a;", "1: x += a; 2: x -= a; 3: x *= a; 4: x /= a; 5: x @= a"),
        ("m &= a; m |= a;", "1: m &= a; 2: m |= a"),
        ("keys[pos..pos + seq] = k;", "1: keys[pos..(pos + seq)] = k"),
        ("keys[.., 0] = k;", "1: keys[.., at 0] = k"),
        ("x=-a;", "1: x = -a"),
    ]);
}

#[test]
fn loops_in_all_four_forms() {
    check(&[
        ("for block in blocks { x = block(x, pos); }", "1: for each block in blocks { 2: x = call block(x, pos) }"),
        ("for (i, block) in blocks { x = block(x); }", "1: for numbered i, block in blocks { 2: x = call block(x) }"),
        (
            "for (a, b) in (self_layers, cross_layers) { x = b(a(x)); }",
            "1: for together a, b in self_layers, cross_layers { 2: x = call b(call a(x)) }",
        ),
        ("for i in 0..n { x += i; }", "1: for range i in 0..n { 2: x += i }"),
        ("for i in 1..=n - 1 { x += i; } x", "1: for range i in 1..=(n - 1) { 2: x += i }; 3: x"),
        ("for a in encoder.blocks { x = a(x); }", "1: for each a in encoder.blocks { 2: x = call a(x) }"),
        ("for in in in { x = in(x); }", "1: for each in in in { 2: x = call in(x) }"),
    ]);
}

#[test]
fn choices_are_statements_or_the_value_of_the_block() {
    check(&[
        ("if flag { x = a; }", "1: if flag { 2: x = a }"),
        ("if flag { x = a; } else { x = b; } x", "1: if flag { 2: x = a } else { 3: x = b }; 4: x"),
        ("if heads == 3 { a } else { b }", "1: if (heads == 3) { 2: a } else { 3: b }"),
        ("if a { 1 } else if b { 2 } else { 3 }", "1: if a { 2: 1 }, if b { 3: 2 } else { 4: 3 }"),
        ("let x = if a { 1 } else { 2 }; x", "1: let x = if a { 2: 1 } else { 3: 2 }; 4: x"),
    ]);
    assert!(clean_body("if flag { a } else { b }").tail.is_some());
    assert!(clean_body("if flag { x = a; } else { x = b; }").tail.is_none());
}

#[test]
fn statements_of_loops_count_on() {
    check(&[(
        "let x = a; for b in bs { for c in cs { x = c; } x = b; } x = d; x",
        "1: let x = a; 2: for each b in bs { 3: for each c in cs { 4: x = c }; 5: x = b }; 6: x = d; 7: x",
    )]);
}

#[test]
fn an_expression_with_a_semicolon_is_a_statement() {
    check(&[("tap(x); x", "1: call tap(x);; 2: x"), (";; x;", "1: x;"), ("", "")]);
}

#[test]
fn a_broken_statement_leaves_the_others_and_what_it_binds() {
    let texts = [
        "let x = a b; let y = 1; y",
        "let (a, b) = ?; a",
        "let x = a let y = b; y",
        "x = a for b in bs { x = b; }",
        "let x; x",
        "for b bs { x = b; } x",
        "x + ? ",
        "let x = ?",
        "if a b { x = 1; } x",
    ];
    let mut table = String::new();
    for text in texts {
        let (body, errors) = broken_body(&format!("\n{text}"));
        table += &format!("{text}\n{errors}    {}\n", show::block(&body));
    }
    expect![[r#"
        let x = a b; let y = 1; y
        2:11: expected `;`, found `b`
            1: let x = POISON; 2: let y = 1; 3: y
        let (a, b) = ?; a
        2:14: expected a value, found `?`
            1: let (a, b) = POISON; 2: a
        let x = a let y = b; y
        2:11: expected `;`, found `let`
            1: let x = a; 2: let y = b; 3: y
        x = a for b in bs { x = b; }
        2:7: expected `;`, found `for`
            1: x = a; 2: for each b in bs { 3: x = b }
        let x; x
        2:6: expected `=`, found `;`
            1: POISON(x); 2: x
        for b bs { x = b; } x
        2:7: expected `in`, found `bs`
            1: for POISON(b) { 2: x = b }; 3: x
        x + ? 
        2:5: expected a value, found `?`
            1: POISON
        let x = ?
        2:9: expected a value, found `?`
            1: let x = POISON; 1: POISON
        if a b { x = 1; } x
        2:6: expected `{`, found `b`
            1: if POISON { 2: x = 1 }; 3: x
    "#]]
    .assert_eq(&table);
}
