//! One mistake a line, and exactly what is said about it.

use super::{definition, function, read, show};
use expect_test::{Expect, expect};

/// Each text between `before` and `after`, with its messages; one mistake is one message.
fn check(before: &str, texts: &[&str], after: &str, expected: &Expect) {
    let mut table = String::new();
    for text in texts {
        let (_, errors) = read(&format!("{before}\n{text}\n{after}"));
        table += &format!("{text}\n{errors}");
        let places = errors.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).count();
        assert_eq!(places, 1, "{text}\n{errors}");
    }
    expected.assert_eq(&table);
}

#[test]
fn habits_from_other_languages_have_their_own_message() {
    let texts = [
        "x[:, 0]",
        "x[1:3]",
        "x[::2]",
        "x[a::2]",
        "x[..., 0]",
        "a ** b",
        "a and b",
        "a or not b",
        "not a",
        "return a",
        "return a;",
        "a * .5",
        ".5",
        "a < b < c",
        "a == b != c",
        "0 < a & b < c",
        "a && b",
        "a || b",
        "~a",
        "a % b",
        "a if flag else b",
        "if flag { a } elif other { b } else { c }",
        "for i in range(3) { x = i; } x",
        "for i, b in bs { x = b(x); } x",
        "for i, b in enumerate(bs) { x = b(x); } x",
        "for (a, b) in zip(as_, bs) { x = b(x); } x",
        "while flag { x = a; } x",
        "f32::max(a, b)",
        "topk(x, 3).0",
        "Linear<3, 4>(x)",
        "let x: f32[3] = a; x",
        "(a, b) = f(x); a",
    ];
    check(
        "layer L { fn f() {",
        &texts,
        "} }",
        &expect![[r#"
            x[:, 0]
            2:3: `:` does not slice: a part of an axis is written `x[a..b]`, the whole of it `..`
            x[1:3]
            2:4: `:` does not slice: a part of an axis is written `x[a..b]`, the whole of it `..`
            x[::2]
            2:3: slices have no step: a part of an axis is written `x[a..b]`, the whole of it `..`
            x[a::2]
            2:4: slices have no step: a part of an axis is written `x[a..b]`, the whole of it `..`
            x[..., 0]
            2:3: `...` is written `..`
            a ** b
            2:3: a power is written `pow(a, b)`, `**` is not an operator
            a and b
            2:3: `and` is written `&`
            a or not b
            2:3: `or` is written `|`
            not a
            2:1: `not` is written `!`
            return a
            2:1: there is no `return`: the last expression, without `;`, is the result
            return a;
            2:1: there is no `return`: the last expression, without `;`, is the result
            a * .5
            2:5: a number starts with a digit: write `0.5`
            .5
            2:1: a number starts with a digit: write `0.5`
            a < b < c
            2:7: comparisons do not chain: write `(a < b) & (b < c)`, with the parentheses
            a == b != c
            2:8: comparisons do not chain: write `(a == b) & (b != c)`, with the parentheses
            0 < a & b < c
            2:11: comparisons do not chain: write `(a < b) & (b < c)`, with the parentheses
            a && b
            2:3: `&&` is written `&`
            a || b
            2:3: `||` is written `|`
            ~a
            2:1: `~` is written `!`
            a % b
            2:3: there is no operator `%`
            a if flag else b
            2:3: a choice is written `if flag { a } else { b }`, one for each element `where(mask, a, b)`
            if flag { a } elif other { b } else { c }
            2:15: `elif` is written `else if`
            for i in range(3) { x = i; } x
            2:10: a loop over numbers is written `for i in 0..n`
            for i, b in bs { x = b(x); } x
            2:6: several names of a loop stand in parentheses: `for (i, layer) in layers`
            for i, b in enumerate(bs) { x = b(x); } x
            2:6: several names of a loop stand in parentheses: `for (i, layer) in layers`
            for (a, b) in zip(as_, bs) { x = b(x); } x
            2:15: a loop over two arrays is written `for (a, b) in (layers, others)`
            while flag { x = a; } x
            2:1: loops run a fixed number of times: write `for i in 0..n`
            f32::max(a, b)
            2:4: expected a single name, found a path: a layer is brought in with `use`, a function is called by its name
            topk(x, 3).0
            2:12: parts of a tuple are bound by `let (a, b) = ..;`
            Linear<3, 4>(x)
            2:1: a layer is a member: declare `name: Linear<..>` above and call `name`
            let x: f32[3] = a; x
            2:6: types of locals are inferred: write `let x = ..;`
            (a, b) = f(x); a
            2:1: parts of a tuple are bound by `let (a, b) = ..;`
        "#]],
    );
}

#[test]
fn mistakes_in_expressions_and_statements() {
    let texts = [
        "a +",
        "a b",
        "f(a b)",
        "f(a = 1, b)",
        "f(0..3)",
        "0..3",
        "x[]",
        "x[a b]",
        "[a; 3]",
        "reshape(x, _)",
        "a + _",
        "1u32",
        "2.5f32",
        "99999999999999999999",
        "'a'",
        "2(x)",
        "f(x)(y)",
        "x.",
        "x.self",
        "self.fc1(x)",
        "let self = a; a",
        "let _ = a; a",
        "let (a, _) = f(x); a",
        "let if = a; a",
        "let 3 = a; a",
        "x + 1 = a; x",
        "f(x) = a; x",
        "x == a = b; x",
        "if a = b { x } else { y }",
        "let x = if a { b };",
        "if a { b }",
        "if a { b } else c",
        "for in 0..3 { x = a; } x",
        "for (a, b) in 0..3 { x = a; } x",
        "for (a, b) in (x, y, z) { x = a; } x",
        "for (a, b, c) in xs { x = a; } x",
        "for i in ..3 { x = a; } x",
        "{ a }",
        "x = ;",
        "a $ b",
    ];
    check(
        "layer L { fn f() {",
        &texts,
        "} }",
        &expect![[r#"
        a +
        3:1: expected a value, found `}`
        a b
        2:3: expected `;`, found `b`
        f(a b)
        2:5: expected `,` or `)`, found `b`
        f(a = 1, b)
        2:10: positional arguments come before named ones
        f(0..3)
        2:4: a range stands in `x[a..b]` or `for i in a..b` only
        0..3
        2:2: a range stands in `x[a..b]` or `for i in a..b` only
        x[]
        2:3: expected an index or a slice between `[` and `]`
        x[a b]
        2:5: expected `,` or `]`, found `b`
        [a; 3]
        2:3: expected `,` or `]`, found `;`
        reshape(x, _)
        2:12: `_` is not a value: it stands for one size in the list of `reshape`
        a + _
        2:5: `_` is not a value: it stands for one size in the list of `reshape`
        1u32
        2:1: numbers have no type suffix here: write `1`, not `1u32`
        2.5f32
        2:1: numbers have no type suffix here: write `2.5`, not `2.5f32`
        99999999999999999999
        2:1: this number is too large
        'a'
        2:1: expected a number or a value, found `'a'`
        2(x)
        2:2: only layers and functions can be called
        f(x)(y)
        2:5: only layers and functions can be called
        x.
        3:1: expected the name of a member or function, found `}`
        x.self
        2:3: `self` cannot be a name
        self.fc1(x)
        2:1: `self` cannot be a name
        let self = a; a
        2:5: `self` cannot be a name
        let _ = a; a
        2:5: `_` is not a name: give it one, such as `_rest`
        let (a, _) = f(x); a
        2:9: `_` is not a name: give it one, such as `_rest`
        let if = a; a
        2:5: expected a name, found the keyword `if` (as a name it is written `r#if`)
        let 3 = a; a
        2:5: expected a name, found `3`
        x + 1 = a; x
        2:3: only a local, a buffer or a slice of a state stands on the left of `=`
        f(x) = a; x
        2:1: only a local, a buffer or a slice of a state stands on the left of `=`
        x == a = b; x
        2:3: only a local, a buffer or a slice of a state stands on the left of `=`
        if a = b { x } else { y }
        2:6: `=` does not compare: write `==`
        let x = if a { b };
        2:9: an `if` with a value needs an `else`
        if a { b }
        2:1: an `if` with a value needs an `else`
        if a { b } else c
        2:17: expected `{` after `else`, found `c`
        for in 0..3 { x = a; } x
        2:8: expected `in`, found `0`
        for (a, b) in 0..3 { x = a; } x
        2:5: a range gives one number at a time: write `for i in ..`
        for (a, b) in (x, y, z) { x = a; } x
        2:5: each array of a loop needs one name: expected 3, found 2
        for (a, b, c) in xs { x = a; } x
        2:5: several names of a loop stand in parentheses: `for (i, layer) in layers`
        for i in ..3 { x = a; } x
        2:10: expected the first number, found `..`
        { a }
        2:1: expected a value, found `{`
        x = ;
        2:5: expected a value, found `;`
        a $ b
        2:3: expected `;`, found `$`
    "#]],
    );
}

#[test]
fn mistakes_in_members() {
    let texts = [
        "fc1: Linear<784, 10",
        "fc1: Linear<784, a > b>",
        "fc1: Linear<784, (a == b)>",
        "fc1: Sequential<Linear<3, 4>, 2>",
        "fc1: Linear<in = 3, 4>",
        "fc1: nn::Linear<3, 4>",
        "fc1: Linear(3, 4)",
        "fc1 = Linear<3, 4>",
        "Linear<3, 4>",
        "scale: f32[dim]",
        "pub fc1: Linear<3, 4>",
        "param scale: f32[dim]",
        "param scale: f32[.., dim] = ones",
        "param scale: (f32, f32) = ones",
        "param scale: f23[dim] = ones",
        "param scale: Tensor = ones",
        "buffer mean: f32[] = zeros",
        "state keys: f32[3] = zeros",
        "param f32[3] = zeros",
        "let a: 3;",
        "let a",
        "fn f(x: f32[3, ..]) { x }",
        "fn f(x: f32[:, 3]) { x }",
        "fn f(x: f32[..., 3]) { x }",
        "fn f(x) { x }",
        "fn f(x: f32 y: f32) { x }",
        "fn f(x: f32 in 0..3) { x }",
        "fn f(x: u32 in 3) { x }",
        "fn f(self, x: f32) { x }",
        "fn f(&self) { x }",
        "fn f(mut x: f32) { x }",
        "fn f(x: ()) { x }",
        "fn f(x: f32) -> { x }",
        "fn f(x: f32) -> f32;",
        "fn f<T>(x: f32) { x }",
        "fn self() { x }",
        "Self: Linear<3, 4>",
        "crate: Linear<3, 4>",
        "_: Linear<3, 4>",
        "if { a: A }",
        "if a",
        "blocks: [Block<3>]",
        "blocks: [Block<3>; 3, 4]",
        "3",
    ];
    check(
        "layer L { before: A,",
        &texts,
        "}",
        &expect![[r#"
            fc1: Linear<784, 10
            3:1: expected `,` or `>`, found `}`
            fc1: Linear<784, a > b>
            2:22: expected `,` or `;` after `fc1`, found `b`
            fc1: Linear<784, (a == b)>
            2:21: arguments between `<` and `>` are numbers or lists of them, never layers or comparisons (a `let` may name one)
            fc1: Sequential<Linear<3, 4>, 2>
            2:23: arguments between `<` and `>` are numbers or lists of them, never layers or comparisons (a `let` may name one)
            fc1: Linear<in = 3, 4>
            2:21: positional arguments come before named ones
            fc1: nn::Linear<3, 4>
            2:8: expected a single name, found a path: a layer is brought in with `use`, a function is called by its name
            fc1: Linear(3, 4)
            2:12: the arguments of a layer stand between `<` and `>`
            fc1 = Linear<3, 4>
            2:5: expected `:` and a layer after `fc1`, found `=`
            Linear<3, 4>
            2:7: expected `:` and a layer after `Linear`, found `<`
            scale: f32[dim]
            2:8: `f32` is a type, not a layer: a tensor is written `param scale: f32[n] = zeros`
            pub fc1: Linear<3, 4>
            2:5: only functions of a model are public: drop the `pub` before `fc1`
            param scale: f32[dim]
            3:1: expected `=` and the initialiser of the param, such as `= zeros`, found `}`
            param scale: f32[.., dim] = ones
            2:18: a stored tensor has all its axes written out: `..` is for functions
            param scale: (f32, f32) = ones
            2:14: a stored tensor has one type, not a tuple
            param scale: f23[dim] = ones
            2:14: unknown type `f23`, did you mean `f32`?
            param scale: Tensor = ones
            2:14: unknown type `Tensor`, expected `f32`, `u32`, `i32`, `u8` or `bool`
            buffer mean: f32[] = zeros
            2:17: a tensor without axes is a scalar: write `f32`
            state keys: f32[3] = zeros
            2:20: a state starts at zero and has no initialiser
            param f32[3] = zeros
            2:10: expected `:` and a type, found `[`
            let a: 3;
            2:6: expected `=` and a value, found `:`
            let a
            3:1: expected `=` and a value, found `}`
            fn f(x: f32[3, ..]) { x }
            2:16: `..` stands for leading axes: it comes first
            fn f(x: f32[:, 3]) { x }
            2:13: expected the size of an axis: a name that stands only in types is bound by the call, any leading axes are `..`
            fn f(x: f32[..., 3]) { x }
            2:13: expected the size of an axis: a name that stands only in types is bound by the call, any leading axes are `..`
            fn f(x) { x }
            2:7: expected `:` and the type of `x`, found `)`
            fn f(x: f32 y: f32) { x }
            2:13: expected `,` or `)`, found `y`
            fn f(x: f32 in 0..3) { x }
            2:13: only a `u32` scalar has bounds
            fn f(x: u32 in 3) { x }
            2:17: expected `..` or `..=`, found `)`
            fn f(self, x: f32) { x }
            2:6: there is no `self`: members are used by their names
            fn f(&self) { x }
            2:7: there is no `self`: members are used by their names
            fn f(mut x: f32) { x }
            2:6: parameters are not `mut`: write `let mut x = x;` inside
            fn f(x: ()) { x }
            2:9: expected types between `(` and `)`
            fn f(x: f32) -> { x }
            2:17: expected a type, found `{`
            fn f(x: f32) -> f32;
            2:20: expected `{`, found `;`
            fn f<T>(x: f32) { x }
            2:5: expected `(` after `f`, found `<`
            fn self() { x }
            2:4: `self` cannot be a name
            Self: Linear<3, 4>
            2:1: `Self` cannot be a name
            crate: Linear<3, 4>
            2:1: `crate` cannot be a name
            _: Linear<3, 4>
            2:1: `_` is not a name: give it one, such as `_rest`
            if { a: A }
            2:4: expected a value, found `{`
            if a
            3:1: expected `{`, found `}`
            blocks: [Block<3>]
            2:18: expected `;` and the length of the array, found `]`
            blocks: [Block<3>; 3, 4]
            2:21: expected `]`, found `,`
            3
            2:1: expected a member, found `3`
        "#]],
    );
}

#[test]
fn mistakes_in_attributes() {
    let texts = [
        "#[cfg(test)] a: A",
        "#[cfg_attr(test, frozen)] a: A",
        "#[froze] a: A",
        "#[derive(Debug)] a: A",
        "#[train] a: A",
        "#[train] fn f() { x }",
        "#[name] a: A",
        "#[name(\"a\")] a: A",
        "#[name = 3] a: A",
        "#[name = \"a\"] #[name = \"b\"] a: A",
        "#[store] a: A",
        "#[store(\"q8_0\")] a: A",
        "#[store(q8_0, q4_0)] a: A",
        "#[frozen = true] a: A",
        "#[frozen] state k: f32[3]",
        "#[name = \"a\"] state k: f32[3]",
        "#[train(\"a.*\")] pub fn f() { x }",
        "#[train(parms = \"a.*\")] pub fn f() { x }",
        "#[ignore(\"a\")] a: A",
        "# a: A",
        "#![frozen] a: A",
        "#[frozen]",
        "fn f() { #[cfg(test)] let x = a; x }",
        "fn f() { /** docs */ #[frozen] x }",
        "fn f(#[name = \"a\"] x: f32) { x }",
        "fn f(x: f32 #[name]) { x }",
        "#[doc = $x] a: A",
    ];
    check(
        "model L { before: A,",
        &texts,
        "}",
        &expect![[r##"
            #[cfg(test)] a: A
            2:3: conditions do not reach into `model!`: put this on the whole invocation
            #[cfg_attr(test, frozen)] a: A
            2:3: conditions do not reach into `model!`: put this on the whole invocation
            #[froze] a: A
            2:3: unknown attribute `froze`, did you mean `frozen`?
            #[derive(Debug)] a: A
            2:3: unknown attribute `derive`, expected `name`, `frozen`, `store`, `precision`, `checkpoint`, `train`, `ignore` or `doc`
            #[train] a: A
            2:3: `#[train]` has no meaning on a sub-layer, expected `name`, `frozen`, `store`, `precision`, `checkpoint` or `doc`
            #[train] fn f() { x }
            2:3: `#[train]` belongs on a `pub fn` of a model
            #[name] a: A
            2:7: expected `#[name = ".."]`, found `]`
            #[name("a")] a: A
            2:7: expected `#[name = ".."]`, found `(`
            #[name = 3] a: A
            2:10: expected `#[name = ".."]`, found `3`
            #[name = "a"] #[name = "b"] a: A
            2:17: `#[name]` is given twice
            #[store] a: A
            2:8: expected `#[store(q8_0)]`, found `]`
            #[store("q8_0")] a: A
            2:9: expected `#[store(q8_0)]`, found `"q8_0"`
            #[store(q8_0, q4_0)] a: A
            2:13: expected `#[store(q8_0)]`, found `,`
            #[frozen = true] a: A
            2:10: expected `#[frozen]`, found `=`
            #[frozen] state k: f32[3]
            2:3: `#[frozen]` has no meaning on a `state`, expected `doc`
            #[name = "a"] state k: f32[3]
            2:3: `#[name]` has no meaning on a `state`, expected `doc`
            #[train("a.*")] pub fn f() { x }
            2:9: expected `#[train(params = "..")]`, found `"a.*"`
            #[train(parms = "a.*")] pub fn f() { x }
            2:9: expected `#[train(params = "..")]`, found `parms`
            #[ignore("a")] a: A
            2:3: `#[ignore]` has no meaning on a sub-layer, expected `name`, `frozen`, `store`, `precision`, `checkpoint` or `doc`
            # a: A
            2:3: expected `[` after `#`, found `a`
            #![frozen] a: A
            2:2: expected `[` after `#`, found `!`
            #[frozen]
            3:1: expected a member, found `}`
            fn f() { #[cfg(test)] let x = a; x }
            2:12: conditions do not reach into `model!`: put this on the whole invocation
            fn f() { /** docs */ #[frozen] x }
            2:24: `#[frozen]` has no meaning here: attributes belong on items and members
            fn f(#[name = "a"] x: f32) { x }
            2:8: `#[name]` has no meaning here: attributes belong on items and members
            fn f(x: f32 #[name]) { x }
            2:13: expected `,` or `)`, found `#`
            #[doc = $x] a: A
            2:9: `$` has no meaning here
        "##]],
    );
}

#[test]
fn mistakes_in_items() {
    let texts = [
        "layre A { }",
        "struct A { }",
        "fn f() { }",
        "layer { }",
        "layer self { }",
        "layer A;",
        "layer A<n { }",
        "layer A<3> { }",
        "layer A<n = > { }",
        "layer A<n = a < b> { }",
        "layer A<batch in 1..=3> { }",
        "model A<n> { }",
        "model A<n in 3> { }",
        "model A<n in ..3> { }",
        "model A<n in 1..=3 step> { }",
        "model A<n: 3> { }",
        "model A<_ = 3> { }",
        "layer B = A<3>;",
        "model B = A<3>",
        "model B = a::A<3>;",
        "pub use a::B;",
        "use a::*;",
        "use a::{B, *};",
        "use a::self;",
        "use a as _;",
        "use a::{self};",
        "use ;",
        "use a::B c::D;",
        "#[cfg(test)] layer A { }",
        "#[derive(Debug)] model A { }",
        "#[ignore] model A { }",
        "#[ignore(3)] model A { }",
        "#[ignore(\"a\")] layer A { }",
        "#[frozen] layer A { }",
        "#[cfg(test)] use a::B;",
        "#[inline] use a::B;",
        "$ layer A { }",
        "layer A<#[frozen] n> { }",
    ];
    check(
        "layer Before { }",
        &texts,
        "layer After { }",
        &expect![[r#"
            layre A { }
            2:1: expected `use`, `layer` or `model`, found `layre`, did you mean `layer`?
            struct A { }
            2:1: expected `use`, `layer` or `model`, found `struct`
            fn f() { }
            2:1: expected `use`, `layer` or `model`, found `fn`
            layer { }
            2:7: expected the name of a layer, found `{`
            layer self { }
            2:7: `self` cannot be a name
            layer A;
            2:8: expected `{` and the members of `A`, found `;`
            layer A<n { }
            2:11: expected `,` or `>`, found `{`
            layer A<3> { }
            2:9: expected a dimension, found `3`
            layer A<n = > { }
            2:13: expected a value, found `>`
            layer A<n = a < b> { }
            2:15: arguments between `<` and `>` are numbers or lists of them, never layers or comparisons (a `let` may name one)
            layer A<batch in 1..=3> { }
            2:9: runtime dimensions belong to models: drop `batch` here and use it in the types of functions, the call binds it
            model A<n> { }
            2:9: nobody passes `n` to a model: give it a default (`n = 128`) or a range (`n in 1..=128`)
            model A<n in 3> { }
            2:15: expected `..` or `..=`, found `>`
            model A<n in ..3> { }
            2:14: expected the least value, found `..`
            model A<n in 1..=3 step> { }
            2:24: expected a value, found `>`
            model A<n: 3> { }
            2:10: expected `,` or `>`, found `:`
            model A<_ = 3> { }
            2:9: `_` is not a name: give it one, such as `_rest`
            layer B = A<3>;
            2:9: only a model can be an instance of another: write `model B = ..`
            model B = A<3>
            3:1: expected `;`, found `layer`
            model B = a::A<3>;
            2:12: expected a single name, found a path: a layer is brought in with `use`, a function is called by its name
            pub use a::B;
            2:1: a re-export of a layer is ordinary Rust: write this `pub use` outside of `model!`
            use a::*;
            2:8: `model!` cannot see what a `*` brings in: name each layer
            use a::{B, *};
            2:12: `model!` cannot see what a `*` brings in: name each layer
            use a::self;
            2:8: `use` in `model!` brings in layers: name one
            use a as _;
            2:10: `use` in `model!` brings in layers: name one
            use a::{self};
            2:9: `use` in `model!` brings in layers: name one
            use ;
            2:5: expected a path, found `;`
            use a::B c::D;
            2:10: expected `;` after `use`, found `c`
            #[cfg(test)] layer A { }
            2:3: conditions do not reach into `model!`: put this on the whole invocation
            #[derive(Debug)] model A { }
            2:3: unknown attribute `derive`, expected `name`, `frozen`, `store`, `precision`, `checkpoint`, `train`, `ignore` or `doc`
            #[ignore] model A { }
            2:9: expected `#[ignore("..")]`, found `]`
            #[ignore(3)] model A { }
            2:10: expected `#[ignore("..")]`, found `3`
            #[ignore("a")] layer A { }
            2:3: `#[ignore]` has no meaning on a layer, expected `doc`
            #[frozen] layer A { }
            2:3: `#[frozen]` has no meaning on a layer, expected `doc`
            #[cfg(test)] use a::B;
            2:3: conditions do not reach into `model!`: put this on the whole invocation
            #[inline] use a::B;
            2:3: `#[inline]` has no meaning on a `use`, expected `doc`, `allow`, `expect`, `warn` or `deny`
            $ layer A { }
            2:1: expected `use`, `layer` or `model`, found `$`
            layer A<#[frozen] n> { }
            2:11: `#[frozen]` has no meaning here: attributes belong on items and members
        "#]],
    );
}

#[test]
fn several_mistakes_are_several_messages_in_source_order() {
    let (source, errors) = read(
        "layer A<n, ?> {
            a: B<1 2>,
            fn f(x: f33) -> f32 {
                let y = x ** 2;
                let z = y and x;
                z
            }
            c: C<1>
        }
        use a::*;
        model M {
            #[frozn] d: D,
            pub fn f() { return x; }
        }",
    );
    assert_eq!(source.items.len(), 2);
    expect![[r#"
        1:12: expected a dimension, found `?`
        2:20: expected `,` or `>`, found `2`
        3:21: unknown type `f33`, did you mean `f32`?
        4:27: a power is written `pow(a, b)`, `**` is not an operator
        5:27: `and` is written `&`
        10:16: `model!` cannot see what a `*` brings in: name each layer
        12:15: unknown attribute `frozn`, did you mean `frozen`?
        13:26: there is no `return`: the last expression, without `;`, is the result
    "#]]
    .assert_eq(&errors);
}

#[test]
fn nesting_has_a_limit() {
    let body = |inner: &str| format!("layer L {{ fn f() {{\n{inner}\n}} }}");
    let brackets = |depth: usize| format!("{}x{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(read(&body(&brackets(60))).1, "");
    let said = read(&body(&brackets(5000))).1;
    assert_eq!(said.split_once(": ").unwrap().1, "more than 64 brackets inside each other\n");
    // Every level of every kind of nesting that costs stack, at the limit.
    let ladders = [
        ("a == a | a & a + a * -(", ")"),
        ("a == a | a & a + a * -f(a, b = ", ")"),
        ("a == a | a & a + a * -x.f(", ")"),
        ("a == a | a & a + a * -x[a..", "]"),
        ("a == a | a & a + a * -[", "]"),
        ("a == a | a & a + a * -if a { let x = ", "; x } else { a }"),
        ("if a { for i in b { ", " } }"),
    ];
    for (open, close) in ladders {
        for depth in [10, 30, 60, 62, 63, 64, 65, 1000] {
            let (source, errors) = read(&body(&format!("{}x{}", open.repeat(depth), close.repeat(depth))));
            // Blocks recover inside, so an expression around one that was too deep can be too deep again.
            assert!(errors.lines().count() <= 1 || open.contains('{'), "{errors}");
            assert!(!errors.is_empty() || depth <= 63, "{open} {depth}");
            drop(show::members(&definition(&source.items[0]).members));
            drop(show::block(&function(&definition(&source.items[0]).members[0]).body));
        }
    }
    let members = format!("layer L {{ {} a: A {} }}", "if a {".repeat(1000), "}".repeat(1000));
    assert_eq!(read(&members).1.split_once(": ").unwrap().1, "more than 64 brackets inside each other\n");
    let sum = |terms: usize| vec!["x"; terms].join(" + ");
    assert_eq!(read(&body(&sum(200))).1, "");
    let deep = "this expression is more than 256 operations deep: name a part of it with `let`\n";
    for text in [sum(100_000), "-".repeat(100_000) + "x", format!("x{}", ".a".repeat(100_000))] {
        assert_eq!(read(&body(&text)).1.split_once(": ").unwrap().1, deep);
    }
}
