//! Each form of an expression, as a tree.

use super::{broken_body, clean_expr, show};
use crate::syntax::ExprKind;

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(show::expr(&clean_expr(text)), *expected, "{text}");
    }
}

#[test]
fn literals_and_names() {
    check(&[
        ("128", "128"),
        ("1_000", "1000"),
        ("1e-5", "1e-5"),
        ("0.5", "0.5"),
        ("true", "true"),
        ("\"bij,bjk->bik\"", "\"bij,bjk->bik\""),
        ("x", "x"),
        ("r#if", "if"),
    ]);
}

#[test]
fn rust_and_wgsl_keywords_are_names() {
    for name in
        ["in", "type", "match", "while", "loop", "mut", "fn", "var", "vec4", "texture", "return", "state", "step"]
    {
        assert_eq!(show::expr(&clean_expr(&format!("{name} + {name}(1)"))), format!("({name} + call {name}(1))"));
    }
}

#[test]
fn products_bind_tighter_than_sums_and_both_group_to_the_left() {
    check(&[
        ("a + b * c", "(a + (b * c))"),
        ("a * b + c", "((a * b) + c)"),
        ("a - b - c", "((a - b) - c)"),
        ("a / b / c", "((a / b) / c)"),
        ("a @ b * c @ d", "(((a @ b) * c) @ d)"),
        ("(a + b) * c", "((a + b) * c)"),
    ]);
}

#[test]
fn signs_bind_tighter_than_products_and_looser_than_calls() {
    check(&[
        ("-a @ b", "(-a @ b)"),
        ("a @ -b", "(a @ -b)"),
        ("--a", "--a"),
        ("-x.relu()", "-method x.relu()"),
        ("-x[0]", "-x[at 0]"),
        ("!a & b", "(!a & b)"),
        ("a-1", "(a - 1)"),
    ]);
}

#[test]
fn logic_binds_tighter_than_comparisons_as_in_rust_and_python() {
    check(&[
        ("a & b | c & d", "((a & b) | (c & d))"),
        ("a == b & c", "(a == (b & c))"),
        ("(a < b) & (b < c)", "((a < b) & (b < c))"),
        ("a + 1 <= b * 2", "((a + 1) <= (b * 2))"),
        ("a + 1 & b", "((a + 1) & b)"),
        ("a<-1", "(a < -1)"),
        ("a != !b", "(a != !b)"),
        ("a >= b", "(a >= b)"),
        ("a > b", "(a > b)"),
        ("(a < b) == (c < d)", "((a < b) == (c < d))"),
    ]);
}

#[test]
fn calls_take_positional_then_named_arguments() {
    check(&[
        ("f()", "call f()"),
        ("softmax(x, axis = -1)", "call softmax(x, axis = -1)"),
        ("softmax(x, axis=-1,)", "call softmax(x, axis = -1)"),
        ("f(a == b)", "call f((a == b))"),
        ("f(mask = !m)", "call f(mask = !m)"),
        ("blocks[0](x)", "call blocks[at 0](x)"),
        ("(a.b)(x)", "call a.b(x)"),
        ("f(g(x)).t()", "method call f(call g(x)).t()"),
        ("einsum(\"ij,jk->ik\", a, b)", "call einsum(\"ij,jk->ik\", a, b)"),
    ]);
}

#[test]
fn methods_and_members() {
    check(&[
        ("x.relu()", "method x.relu()"),
        ("layer.encode(x, pos)", "method layer.encode(x, pos)"),
        ("embed.weight", "embed.weight"),
        ("embed.weight.t()", "method embed.weight.t()"),
        ("norm(x[-1]) @ embed.weight.t()", "(call norm(x[at -1]) @ method embed.weight.t())"),
        ("x.sum(axis = 0).exp()", "method method x.sum(axis = 0).exp()"),
        ("1.5.exp()", "method 1.5.exp()"),
    ]);
}

#[test]
fn indices_and_slices() {
    check(&[
        ("x[0]", "x[at 0]"),
        ("x[-1]", "x[at -1]"),
        ("x[a..b]", "x[a..b]"),
        ("x[..b]", "x[..b]"),
        ("x[a..]", "x[a..]"),
        ("x[..]", "x[..]"),
        ("x[..-1]", "x[..-1]"),
        ("x[a..=b]", "x[a..=b]"),
        ("x[.., 0]", "x[.., at 0]"),
        ("x[0, ..]", "x[at 0, ..]"),
        ("x[.., 1..3,]", "x[.., 1..3]"),
        ("w[ids]", "w[at ids]"),
        ("keys[..pos + seq]", "keys[..(pos + seq)]"),
        ("x[0][1]", "x[at 0][at 1]"),
        ("x[0..3]", "x[0..3]"),
    ]);
}

#[test]
fn arrays_and_tuples() {
    check(&[
        ("reshape(x, [seq, heads, head])", "call reshape(x, array[seq, heads, head])"),
        ("reshape(x, [a, _, c])", "call reshape(x, array[a, _, c])"),
        ("reshape(x, [_])", "call reshape(x, array[_])"),
        ("pad(x, [[1, 1], [0, 2]])", "call pad(x, array[array[1, 1], array[0, 2]])"),
        ("[]", "array[]"),
        ("(a, b)", "tuple(a, b)"),
        ("(a,)", "tuple(a)"),
        ("(a)", "a"),
    ]);
}

#[test]
fn a_choice_is_a_value() {
    check(&[
        ("1 + if flag { a } else { b }", "(1 + if flag { 2: a } else { 3: b })"),
        ("f(if a { 1 } else if b { 2 } else { 3 })", "call f(if a { 2: 1 }, if b { 3: 2 } else { 4: 3 })"),
    ]);
}

#[test]
fn spans_are_those_of_the_main_tokens() {
    let text = "alpha + beta.gamma(delta[1], -3)";
    let (body, errors) = broken_body(text);
    assert_eq!(errors, "");
    let sum = body.tail.unwrap().value;
    // Columns of the text, which stands behind a brace.
    let at = |span: proc_macro2::Span| span.start().column - 1;
    assert_eq!(at(sum.span), text.find('+').unwrap());
    let ExprKind::Binary(_, left, right) = &sum.kind else { panic!("{sum:?}") };
    assert_eq!(at(left.span), 0);
    assert_eq!(at(right.span), text.find("gamma").unwrap());
    let ExprKind::Method(receiver, name, arguments) = &right.kind else { panic!("{right:?}") };
    assert_eq!(at(receiver.span), text.find("beta").unwrap());
    assert_eq!(at(name.span), text.find("gamma").unwrap());
    assert_eq!(at(arguments[0].value.span), text.find('[').unwrap());
    assert_eq!(arguments[0].value.span.end().column - 1, text.find(']').unwrap() + 1);
    assert_eq!(at(arguments[1].value.span), text.find('-').unwrap());
}

#[test]
fn groups_without_delimiters_are_parentheses() {
    use proc_macro2::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
    let inner: TokenStream = "1 + 2".parse().unwrap();
    let none = |stream| TokenTree::Group(Group::new(Delimiter::None, stream));
    let single = none(none("x".parse().unwrap()).into());
    let value: TokenStream = [
        single,
        TokenTree::Punct(Punct::new('*', Spacing::Alone)),
        none(inner),
        TokenTree::Punct(Punct::new('*', Spacing::Alone)),
        TokenTree::Ident(Ident::new("y", Span::call_site())),
    ]
    .into_iter()
    .collect();
    let body = TokenTree::Group(Group::new(Delimiter::Brace, value));
    let head: TokenStream = "fn f()".parse().unwrap();
    let members = TokenTree::Group(Group::new(Delimiter::Brace, head.into_iter().chain([body]).collect()));
    let visibility = none("pub(crate)".parse().unwrap());
    let item: TokenStream = "layer L".parse().unwrap();
    let whole = [visibility].into_iter().chain(item).chain([members]).collect();
    let mut errors = crate::errors::Errors::new();
    let source = crate::syntax::parse(whole, &mut errors);
    assert_eq!(errors.render(), "");
    assert!(!source.items[0].visibility.is_private() && !source.items[0].visibility.public);
    let body = &super::function(&super::definition(&source.items[0]).members[0]).body;
    assert_eq!(show::block(body), "1: ((x * (1 + 2)) * y)");
}
