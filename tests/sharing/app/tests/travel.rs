//! Layers that arrive, each with its own helpers, from modules and from crates.
#![deny(warnings, unused)]
#![forbid(unsafe_code)]

/// `name[shape]` of each parameter.
macro_rules! parameters {
    ($model:ty) => {
        <$model>::PARAMETERS.iter().map(|p| format!("{}{:?}", p.name, p.shape)).collect::<Vec<_>>()
    };
}

/// Under a member's name.
fn under(name: &str, inner: &[String]) -> Vec<String> {
    inner.iter().map(|parameter| format!("{name}.{parameter}")).collect()
}

fn all(parts: &[Vec<String>]) -> Vec<String> {
    parts.concat()
}

fn linear(from: usize, to: usize) -> Vec<String> {
    vec![format!("weight[{to}, {from}]"), format!("bias[{to}]")]
}

fn norm(dim: usize) -> Vec<String> {
    vec![format!("inner.weight[{dim}]")]
}

fn swiglu(dim: usize, ffn: usize) -> Vec<String> {
    let down = vec![format!("down.weight[{dim}, {ffn}]")];
    all(&[under("norm", &norm(dim)), under("gate.up", &linear(dim, ffn)), down])
}

fn attention(dim: usize, heads: usize) -> Vec<String> {
    let head = dim / heads;
    let mut helper: Vec<String> = vec![format!("q.weight[{heads}, {head}, {dim}]"), format!("q.bias[{heads}, {head}]")];
    helper.push(format!("norm.inner.weight[{heads}, {head}]"));
    all(&[under("helpers.{}", &helper), under("out", &linear(head, dim))])
}

fn block(dim: usize, heads: usize, ffn: usize) -> Vec<String> {
    all(&[under("norm", &norm(dim)), under("attention", &attention(dim, heads)), under("mlp", &swiglu(dim, ffn))])
}

mod private_helpers {
    mega::model! {
        use layers::{attention::Attention, mlp::SwiGlu};

        layer Helper<dim> { mine: LayerNorm<dim>, fn forward(x: f32[.., dim]) -> f32[.., dim] { mine(x) } }
        pub(super) model Three<dim = 8, n in 1..=5> {
            a: Attention<dim, 2>, b: SwiGlu<dim, 16>, c: Helper<dim>,
            pub fn run(x: f32[n, dim]) -> f32[n, dim] { c(b(a(x))) }
        }
    }
}

#[test]
fn helpers_of_one_name_stay_apart() {
    let mine = vec!["c.mine.weight[8]".to_string(), "c.mine.bias[8]".to_string()];
    let expected = all(&[under("a", &attention(8, 2)), under("b", &swiglu(8, 16)), mine]);
    assert_eq!(parameters!(private_helpers::Three), expected);
    let table = private_helpers::Three::schedule_run().unwrap().to_string();
    for layer in ["a.helpers.q", "b.down", "c.mine"] {
        assert!(table.contains(layer), "{layer} in {table}");
    }
}

mod through_three_crates {
    mega::model! {
        use middle::{Attention, Gated, Published as Inner, Stack, other::Block};
        use layers::Hidden;

        pub(super) model Six<dim = 8, n in 1..=3> {
            a: Stack<dim, depth = 3>,
            b: Gated<dim, 2>,
            c: Attention<dim, 4>,
            d: Block<dim>,
            e: Inner<dim = 8>,
            f: Hidden<dim>,
            pub fn run(x: f32[n, dim]) -> f32[n, dim] { e.run(d(c(b(a(f.inner(x)))))) }
        }
    }
}

#[test]
fn re_exports_renames_and_diamonds() {
    let stack = |dim: usize, depth: usize| {
        let blocks = block(dim, 2, 4 * dim);
        let stacked = blocks.iter().map(|parameter| match parameter.split_once('[') {
            Some((name, shape)) => format!("{name}[{depth}, {shape}"),
            None => parameter.clone(),
        });
        let stacked: Vec<String> = stacked.collect();
        let twins = all(&[under("helper.both.a", &linear(dim, dim)), under("helper.again.a", &linear(dim, dim))]);
        all(&[under("blocks.{}", &stacked), twins, under("last", &swiglu(dim, dim))])
    };
    let expected = all(&[
        under("a", &stack(8, 3)),
        under("b", &swiglu(8, 2)),
        under("c", &attention(8, 4)),
        under("d.only", &linear(8, 8)),
        under("e.stack", &stack(8, 2)),
        vec!["f.inner.weight[8]".to_string()],
    ]);
    assert_eq!(parameters!(through_three_crates::Six), expected);
    assert_eq!(parameters!(middle::Published), under("stack", &stack(4, 2)));
    assert_eq!(parameters!(middle::Wider), under("stack", &stack(8, 2)));
    assert!(middle::Wider::schedule_run().is_ok());
}

mod instances {
    mega::model! {
        use layers::Regressor;

        /// Methods arrive with the import.
        pub model Small = Regressor<inputs = 3, outputs = 1>;
        /// Of an instance.
        pub(super) model Smaller = Small<2>;
        pub(super) model Fixed = Regressor<batch = 7>;
        pub(super) model Ensemble<n in 1..=9> {
            parts: [Small; 3], other: Regressor<inputs = 3, outputs = 1, batch = n>,
            pub fn run(x: f32[n, 3]) -> f32[n, 1] {
                let mut sum = other.predict(x);
                for part in parts { sum = sum + part.predict(x); }
                sum
            }
        }
    }

    /// What is generated has the usual methods, whose types this names.
    pub(super) fn train(model: Small, x: &[f32], y: &[f32]) -> Result<Small, mega::Error> {
        let mut trainer: SmallTrainer = model.trainer(mega::Sgd::new(0.1))?;
        trainer.step(x, y)?;
        let mut model = trainer.into_model();
        let _: mega::Tensor<f32> = model.predict(x)?;
        Ok(model)
    }
}

#[test]
fn instances_of_imported_models_have_their_methods_and_sizes() {
    use instances::{Ensemble, Fixed, Small, Smaller};
    assert_eq!(parameters!(Small), under("fc", &linear(3, 1)));
    assert_eq!(parameters!(Smaller), under("fc", &linear(2, 1)));
    assert_eq!(parameters!(Fixed), under("fc", &linear(4, 2)));
    assert_eq!(Ensemble::PARAMETER_COUNT, 4 * 4);
    assert!(Small::schedule_predict().unwrap().to_string().contains("[batch, 1]"));
    assert!(Fixed::schedule_predict().unwrap().to_string().contains("[7, 2]"));
    assert!(Ensemble::schedule_run().unwrap().to_string().contains("repeat 3"));
    let _ = instances::train;
}

#[test]
fn in_functions() {
    let names = layers::local();
    let ends: Vec<&str> = names.iter().filter(|name| !name.starts_with("b.")).copied().collect();
    assert_eq!(ends, ["a.inner.weight", "c.norm.inner.weight", "c.gate.up.weight", "c.gate.up.bias", "c.down.weight"]);
    assert_eq!(names.len(), ends.len() + block(8, 2, 16).len());
}

/// Two modules whose `model!`s need each other: only a layer that contains itself is an error.
mod knot {
    pub(super) mod left {
        mega::model! {
            use super::right::Right;
            pub layer Base<dim> { inner: RmsNorm<dim> }
            pub model Top<dim = 8> { right: Right<dim> }
        }
    }
    pub(super) mod right {
        mega::model! {
            use super::left::Base;
            pub layer Right<dim> { base: Base<dim> }
        }
    }
}

#[test]
fn modules_that_import_each_other() {
    assert_eq!(parameters!(knot::left::Top), ["right.base.inner.weight[8]"]);
}

/// `super` and `self` in a function mean its module; a name alone means what the function has.
mod scopes {
    mega::model! { layer Outer<dim> { outer: RmsNorm<dim> } }

    pub(super) fn parameters() -> [Vec<String>; 3] {
        mod inner {
            mega::model! {
                use super::Outer;
                pub(super) model M<dim = 2> { a: Outer<dim> }
            }
        }
        mega::model! {
            use self::Outer;
            model M<dim = 3> { a: Outer<dim> }
        }
        let own = {
            mega::model! {
                layer Outer<dim> { mine: Linear<dim, dim> }
                layer Alone<dim> { outer: Outer<dim> }
            }
            mega::model! {
                use Alone;
                model M<dim = 4> { a: Alone<dim> }
            }
            parameters!(M)
        };
        [parameters!(inner::M), parameters!(M), own]
    }
}

#[test]
fn paths_in_functions() {
    let [inner, outer, own] = scopes::parameters();
    assert_eq!(inner, ["a.outer.weight[2]"]);
    assert_eq!(outer, ["a.outer.weight[3]"]);
    assert_eq!(own, under("a.outer.mine", &linear(4, 4)));
}

/// All that shares a layer's name in another namespace, and derives of the same name.
mod names {
    macro_rules! Mixed {
        () => {
            7
        };
    }
    pub(super) const SEVEN: i32 = Mixed!();

    /// `Mixed!` alone is the macro, a path ends at the layer.
    pub(super) mod same {
        macro_rules! Mixed {
            () => {
                8
            };
        }
        mega::model! { pub(crate) layer Mixed<dim> { inner: RmsNorm<dim> } }
        mega::model! {
            use self::Mixed;
            pub model M<dim = 2> { inner: Mixed<dim> }
        }
        pub(crate) const EIGHT: i32 = Mixed!();
    }

    pub(super) mod layers {
        pub(crate) struct Mixed {
            pub(crate) field: i32,
        }
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Derived(pub(crate) i32);

        mega::model! {
            pub(crate) layer Mixed<dim> { inner: Linear<dim, 1> }
            layer Default<dim> { inner: Mixed<dim> }
            layer Debug<dim> { inner: Default<dim> }
            pub model Clone<dim = 2> { inner: Debug<dim>, linear: Linear<dim, 3> }
        }
    }

    mega::model! {
        use self::layers::Mixed;
        layer Linear<dim> { shadows: RmsNorm<dim> }
        pub(super) model Shadow<dim = 2> { inner: Mixed<dim>, linear: Linear<dim> }
    }
}

#[test]
fn names_of_other_namespaces_and_built_ins() {
    let value = names::layers::Mixed { field: names::SEVEN };
    assert_eq!(value.field, names::layers::Derived::default().clone().0 + 7);
    assert_eq!(names::same::EIGHT, 8);
    assert_eq!(parameters!(names::same::M), ["inner.inner.weight[2]"]);
    let shadow = vec!["linear.shadows.weight[2]".to_string()];
    assert_eq!(parameters!(names::Shadow), all(&[under("inner.inner", &linear(2, 1)), shadow]));
    let debug = under("inner.inner.inner.inner", &linear(2, 1));
    assert_eq!(parameters!(names::layers::Clone), all(&[debug, under("linear", &linear(2, 3))]));
}

/// An invocation that a macro of the user wrote.
mod by_macro {
    macro_rules! wrapped {
        ($module:ident $layer:ident $size:expr) => {
            mod $module {
                mega::model! {
                    use $crate::names::layers::Mixed;
                    pub layer $layer<dim> { inner: Linear<dim, 2 * $size>, mixed: Mixed<dim> }
                }
            }
        };
    }
    wrapped!(a One 1 + 2);
    wrapped!(b Two 3);
    mega::model! {
        use self::{a::One, b::Two};
        pub(super) model Both<dim = 1> { one: One<dim>, two: Two<dim> }
    }
}

#[test]
fn invocations_from_a_macro() {
    let layer = all(&[under("inner", &linear(1, 6)), under("mixed.inner", &linear(1, 1))]);
    assert_eq!(parameters!(by_macro::Both), all(&[under("one", &layer), under("two", &layer)]));
}

#[test]
fn silenced_unused_import() {
    mega::model! {
        #[allow(unused_imports)]
        use layers::mlp::SwiGlu;
    }
}
