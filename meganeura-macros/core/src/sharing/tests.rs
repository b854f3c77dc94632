//! Items across invocations, with a stand-in for what rustc does between the two calls.
#![allow(clippy::unwrap_used)]

use crate::testing::Expander;

const NORM: &str = "pub(crate) layer Norm<dim, eps = 1e-5> {
    inner: RmsNorm<dim, eps = eps>,
    fn forward(x: f32[.., dim]) -> f32[.., dim] { inner(x) }
}";

const HALF: &str = "use crate::norm::Norm;
layer Helper<a, b> { up: Linear<a, b>, fn forward(x: f32[.., a]) -> f32[.., b] { up(x) } }
pub layer Half<dim> {
    let half = dim / 2;
    norm: Norm<dim>, up: Helper<dim, half>,
    fn forward(x: f32[.., dim]) -> f32[.., half] { up(norm(x)) }
    pub fn twice(x: f32[.., dim]) -> f32[.., half] { 2 * forward(x) }
}";

const NET: &str = "use crate::half::Half;
layer Helper<dim> { param w: f32[dim] = ones; fn forward(x: f32[.., dim]) -> f32[.., dim] { x * w } }
pub model Net<dim = 8, batch in 1..=4> {
    half: Half<dim>, own: Helper<dim>,
    pub fn run(x: f32[batch, dim]) -> f32[batch, 4] { half(own(x)) + half.twice(x) }
}";

fn expanded(modules: &[(&str, &str)]) -> Expander {
    let mut expander = Expander::default();
    for (module, text) in modules {
        expander.module(&format!("crate::{module}"), text);
    }
    expander
}

/// The messages of all modules; every chain has come to its end.
fn mistakes(modules: &[(&str, &str)]) -> Vec<String> {
    let made = expanded(modules);
    assert!(made.missing().is_empty(), "{:?}", made.missing());
    made.errors()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The bytes and statics of a model.
fn data(made: &Expander) -> String {
    let text = made.tokens.to_string();
    let at = text.find("static MODEL").unwrap();
    text[at..].to_string()
}

#[test]
fn layers_arrive_with_helpers_of_their_own_whatever_the_order_of_modules() {
    let made = expanded(&[("norm", NORM), ("half", HALF), ("net", NET)]);
    assert_eq!(made.errors(), [""; 0]);
    let text = made.tokens.to_string();
    for name in ["half.norm.inner.weight", "half.up.up.weight", "own.w"] {
        assert!(text.contains(name), "{name} in {text}");
    }
    let backwards = expanded(&[("net", NET), ("half", HALF), ("norm", NORM)]);
    assert_eq!((backwards.errors().len(), backwards.missing().len()), (0, 0));
    assert_eq!(backwards.payload("crate::half::Half"), made.payload("crate::half::Half"));
    assert_eq!(data(&backwards), data(&made));
}

#[test]
fn a_model_is_the_same_data_wherever_its_layers_were_written() {
    let layers = "layer Block<dim> {
        norm: RmsNorm<dim>, up: Linear<dim, dim>,
        fn forward(x: f32[.., dim]) -> f32[.., dim] { x + relu(up(norm(x))) }
    }";
    let model = "pub model Deep<n in 1..=9> {
        blocks: [Block<6>; 3],
        pub fn run(x: f32[n, 6]) -> f32[n, 6] { let mut x = x; for block in blocks { x = block(x); } x }
        #[train] pub fn loss(x: f32[n, 6], y: f32[n, 6]) -> f32 { mse(run(x), y) }
    }";
    let together = expanded(&[("all", &format!("{layers} {model}"))]);
    let apart = expanded(&[("layers", layers), ("net", &format!("use crate::layers::Block as Block; {model}"))]);
    assert_eq!((together.errors().len(), apart.errors().len()), (0, 0));
    let statics = |made: &Expander| data(made).split("macro_rules").next().unwrap().to_string();
    assert_eq!(statics(&together), statics(&apart));
}

#[test]
fn what_travels_holds_what_the_item_reaches_and_each_unit_once() {
    let twice = "use crate::norm::Norm;
        layer Left<dim> { n: Norm<dim> } layer Right<dim> { n: Norm<dim> } layer Aside<dim> { n: Norm<dim> }
        pub layer Both<dim> { left: Left<dim>, right: Right<dim> }";
    let made = expanded(&[("norm", NORM), ("both", twice)]);
    let payload = made.payload("crate::both::Both");
    for (text, count) in
        [("layer Norm", 1), ("layer Left", 1), ("layer Right", 1), ("layer Both", 1), ("layer Aside", 0)]
    {
        assert_eq!(payload.matches(text).count(), count, "{text} in {payload}");
    }
}

#[test]
fn an_id_follows_from_the_text_and_what_it_means_not_from_where_it_came() {
    let id = |made: &Expander, path: &str| made.payload(path).split_whitespace().nth(1).unwrap().to_string();
    let other = NORM.replace("1e-5", "1e-6");
    let norms = expanded(&[("norm", NORM), ("twin", NORM), ("other", &other)]);
    assert_eq!(id(&norms, "crate::norm::Norm"), id(&norms, "crate::twin::Norm"));
    assert_ne!(id(&norms, "crate::norm::Norm"), id(&norms, "crate::other::Norm"));
    let user = |from: &str| format!("use crate::{from}::Norm; layer User<dim> {{ n: Norm<dim> }}");
    let [a, b, c] = ["norm", "twin", "other"].map(|from| {
        let made = expanded(&[("norm", NORM), ("twin", NORM), ("other", &other), ("user", &user(from))]);
        id(&made, "crate::user::User")
    });
    assert_eq!(a, b);
    assert_ne!(a, c);
}

#[test]
fn mistakes_in_what_arrived_are_told_at_the_member_and_say_where_they_are() {
    let net = "use crate::half::Half;
        layer Own<dim> { inner: Half<dim>, fn forward(x: f32[.., dim]) -> f32[.., 3] { inner(x) } }
        model Net<n in 1..=4> {
            odd: Half<7>, own: Own<9>, deep: [Half<8>; 2],
            pub fn run(x: f32[n, 6]) -> f32[n, 4] { for one in deep { let y = one(x); } x[.., ..4] }
        }";
    let found: Vec<String> = mistakes(&[("norm", NORM), ("half", HALF), ("net", net)]);
    let found: Vec<String> = found.iter().map(|error| one_line(error)).collect();
    assert_eq!(found.len(), 3, "{found:#?}");
    // Of a member of an own layer, that one; the call is the user's own text.
    assert!(
        found[0].starts_with("9 / 2 leaves a rest of 1: sizes divide exactly in `Half`, <parsed string"),
        "{found:#?}"
    );
    assert!(
        found[1].starts_with("7 / 2 leaves a rest of 1: sizes divide exactly in `Half`, <parsed string"),
        "{found:#?}"
    );
    assert_eq!(found[2], "`deep` expects its input's last axis to be 8, found 6 x: f32[n, 6]");
}

#[test]
fn arguments_of_what_arrived_are_checked_once_at_the_importer() {
    let net = "use crate::half::{Half, Half as Other};
        layer Unused<dim> { a: Half<dim, dim>, b: Other<dims = 3> }
        model Net<n in 1..=4> { a: Half, b: Unused<4>, pub fn run(x: f32[n, 4]) -> f32[n, 4] { a(x) } }";
    let found = mistakes(&[("norm", NORM), ("half", HALF), ("net", net)]);
    let found: Vec<&str> = found.iter().map(|error| error.lines().next().unwrap()).collect();
    assert_eq!(
        found,
        [
            "`Half` takes 1 argument, found 2",
            "`Other` has no argument `dims`, did you mean `dim`?",
            "`Half` takes 1 argument, found 0: `dim` is missing",
        ]
    );
}

#[test]
fn a_broken_layer_is_told_where_it_is_and_silent_for_all_others() {
    let broken = "pub layer Syntax<dim> { a: Linear<dim dim> }
        pub layer Name<dim> { a: Linaer<dim> }
        pub layer Arity<dim> { a: Fine<dim, dim> }
        pub layer Header<dim other> { a: Fine<dim> }
        pub layer Fine<dim> { a: Linear<dim, dim> }
        layer Inside<dim> { a: Arity<dim> }
        pub layer Through<dim> { a: Inside<dim> }
        pub layer Around<dim> { a: Around<dim> }";
    let net = "use crate::broken::{Syntax, Name, Arity, Header, Fine, Through, Around};
        pub model Net<dim = 2> { a: Syntax<dim>, b: Name<dim>, c: Arity<dim>, d: Through<dim>, e: Around<dim>, f: Fine<3>, g: Header }";
    let again = "use crate::net::Net; pub model Again<n in 1..=2> { a: Net, pub fn f(x: f32[n]) -> f32[n] { x } }";
    let alone = mistakes(&[("broken", broken)]);
    assert_eq!(alone.len(), 5, "{alone:#?}");
    assert_eq!(mistakes(&[("broken", broken), ("net", net), ("again", again)]), alone);
    let poison = expanded(&[("broken", broken)]);
    for (name, has) in [("Syntax", false), ("Name", false), ("Arity", false), ("Header", false), ("Fine", true)] {
        let payload = poison.payload(&format!("crate::broken::{name}"));
        assert!(payload.starts_with("v1 u") && payload.contains(&format!("layer {name}")) == has, "{payload}");
    }
}

#[test]
fn a_use_that_leads_nowhere_breaks_only_what_needs_it() {
    let part = "use crate::missing::Gone; use crate::norm::Norm;
        pub layer Needs<dim> { a: Gone<dim> } pub layer Free<dim> { n: Norm<dim> }";
    let made = expanded(&[("norm", NORM), ("part", part)]);
    assert_eq!(made.missing(), ["crate::missing::Gone"]);
    assert!(made.payload("crate::part::Needs").is_empty() && made.payload("crate::part::Free").contains("layer Norm"));
    assert_eq!(made.errors(), [""; 0]);
}

#[test]
fn a_use_that_nothing_needs_is_left_to_rustc() {
    let made = expanded(&[("norm", NORM), ("idle", "#[allow(unused)] use crate::norm::Norm as N; layer A {}")]);
    let text = made.tokens.to_string();
    assert!(text.contains("const _ : () = { # [allow (unused)] use crate :: norm :: Norm as N ; } ;"), "{text}");
    let used = expanded(&[("norm", NORM), ("busy", "use crate::norm::Norm as N; layer A { n: N<4> }")]);
    assert!(!used.tokens.to_string().contains("use crate :: norm"));
}

#[test]
fn names_are_given_once() {
    let found =
        mistakes(&[("norm", NORM), ("net", "use crate::norm::Norm; use crate::norm::{Norm}; layer Norm<a> {}")]);
    assert_eq!(found, ["`Norm` is defined twice, first on line 1", "`Norm` is defined twice, first on line 1"]);
}

#[test]
fn what_another_version_says_is_told_once_at_the_use() {
    let mut made = Expander::default();
    made.provide("crate::later::Later", "v2 whatever { that version has to say }");
    made.provide("crate::later::Richer", "v1 u1 u1 { [] layer Richer<dim> { a: BuiltInLater<dim> } }");
    made.provide(
        "crate::later::Newer",
        "v1 u2 u2 { [] layer Newer { fn forward(x: f32[n]) -> f32[n] { new_op(x) } } }",
    );
    made.module(
        "crate",
        "use crate::later::{Later, Richer, Newer};
        layer A<dim> { a: Later<dim> }
        model B { b: Later<1>, pub fn f(x: f32[2]) -> f32[2] { b(x) } }
        model C { a: Richer<2> }
        model D { a: Newer, pub fn f(x: f32[2]) -> f32[2] { a(x) } }",
    );
    let mut found: Vec<String> = made.errors().iter().map(|error| one_line(error)).collect();
    // rustc shows equal messages at one place once.
    found.dedup();
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].contains("`Later` was built with another version of this crate (layer protocol v2, here v1)"));
    assert!(found[1].starts_with("unknown layer `BuiltInLater` in `Richer`"), "{found:#?}");
    assert!(found[2].starts_with("unknown name `new_op` in `Newer`"), "{found:#?}");
}

const INNER: &str = "pub model Inner<width = 4, n in 2..=6, k in 1..=3> {
    fc: Linear<width, 3>,
    pub fn run(x: f32[n, width]) -> f32[n, 3] { fc(x) }
    pub fn rows(x: f32[n, k]) -> f32[n] { sum(x, axis = 1) }
}";

#[test]
fn dimensions_of_a_member_model_are_bound_by_the_call_unless_they_are_passed() {
    let net = |body: &str| format!("use crate::inner::Inner; model Net<rows in 2..=5, many in 7..=9> {{ {body} }}");
    let found = |body: &str| mistakes(&[("inner", INNER), ("net", &net(body))]).join(" | ");
    assert_eq!(found("a: Inner, pub fn f(x: f32[rows, 4]) -> f32[rows, 3] { a.run(x) }"), "");
    assert_eq!(found("a: Inner<8, n = rows>, pub fn f(x: f32[rows, 8]) -> f32[rows, 3] { a.run(x) }"), "");
    assert_eq!(
        found(
            "a: [Inner<n = 3>; 2], pub fn f(x: f32[3, 4]) -> f32 { let mut y = 0.0; for b in a { y += sum(b.run(x)); } y }"
        ),
        ""
    );
    let passed = found("a: Inner<n = 3>, pub fn f(x: f32[rows, 4]) -> f32[rows, 3] { a.run(x) }");
    assert!(
        passed.contains("`run` expects the first axis of `x` to be 3") && passed.contains("found `rows`"),
        "{passed}"
    );
    let outside = found("a: Inner, pub fn f(x: f32[many, 4]) -> f32[many, 3] { a.run(x) }");
    assert!(outside.contains("`n` of `a` is in 2..=6, found `many`"), "{outside}");
    let never = found("a: Inner<n = 7>, pub fn f(x: f32[7, 4]) -> f32[7, 3] { a.run(x) }");
    assert!(never.contains("`n` of `a` is in 2..=6, found 7"), "{never}");
}

#[test]
fn an_instance_is_the_model_with_its_arguments() {
    let base = "pub model Base<width = 4, classes = 2 * width, n in 1..=6> {
        fc: Linear<width, classes>,
        pub fn run(x: f32[n, width]) -> f32[n, classes] { fc(x) }
        #[train] pub fn loss(x: f32[n, width], y: u32[n]) -> f32 { cross_entropy(run(x), y) }
    }";
    let written = base.replace("Base", "Made").replace("width = 4", "width = 5").replace("2 * width", "3");
    let own = expanded(&[("one", &format!("pub model Made = Half<5>; {base} model Half = Base<classes = 3>;"))]);
    let other = expanded(&[("base", base), ("one", "use crate::base::Base; pub model Made = Base<5, classes = 3>;")]);
    let plain = expanded(&[("one", &written)]);
    let statics = |made: &Expander| {
        let text = made.tokens.to_string();
        let bytes = text.split("static MODEL").skip(1).find(|part| part.contains("x04Made")).unwrap();
        bytes.split("# [allow (dead_code)] impl").next().unwrap().to_string()
    };
    for made in [&own, &other, &plain] {
        assert_eq!(made.errors(), [""; 0]);
        let text = made.tokens.to_string();
        for part in ["struct Made", "struct MadeTrainer", "fn run", "fn schedule_loss"] {
            assert!(text.contains(part), "{part}");
        }
    }
    assert_eq!(statics(&own), statics(&plain));
    assert_eq!(statics(&other), statics(&plain));
}

#[test]
fn instances_are_checked_as_members_are() {
    let base =
        "pub model Base<width = 4, n in 1..=6> { let half = width / 2; pub fn run(x: f32[n, half]) -> f32 { sum(x) } }
        pub layer Part<dim> {}";
    let found = |text: &str| {
        let found = mistakes(&[("base", base), ("one", &format!("use crate::base::{{Base, Part}}; {text}"))]);
        found.iter().map(|error| one_line(error.lines().next().unwrap())).collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(found("model A = Base;"), "");
    assert_eq!(found("model A = Base<n = 9>;"), "`n` of `A` is in 1..=6, found 9");
    assert_eq!(found("model A = Base<5>;"), "5 / 2 leaves a rest of 1: sizes divide exactly");
    assert_eq!(found("model A = Base<4, 2, 1>;"), "`Base` takes at most 2 arguments, found 3");
    assert_eq!(found("model A = Base<breadth = 1>;"), "`Base` has no argument `breadth`, expected one of `width`, `n`");
    assert_eq!(found("model A = Base<width = w>;"), "unknown name `w`");
    assert_eq!(found("model A = Part<4>;"), "`Part` is a layer: only a model has instances");
    assert_eq!(found("model A = B; model B = A;"), "`A` contains itself: A → B → A");
    assert_eq!(found("model A = Bass;"), "unknown layer `Bass`, did you mean `Base`?");
}
