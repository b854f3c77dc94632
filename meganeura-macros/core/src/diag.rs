//! The wording of every message, by stage.
//!
//! Lower case, no full stop, the user's own names in backticks, expected before found, a fix where there is one.

pub(crate) mod resolve;

use proc_macro2::Span;

use crate::nearest::nearest;

/// Something else stands where something is needed.
pub fn expected(expected: &str, found: &str) -> String {
    format!("expected {expected}, found {found}")
}

/// ", did you mean `..`?" where a candidate is near.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or_else(String::new, |candidate| format!(", did you mean `{candidate}`?"))
}

/// `a`, `b` or `c`
pub fn alternatives(names: &[&str]) -> String {
    match names {
        [] => "nothing".into(),
        [only] => format!("`{only}`"),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("{} or `{last}`", first.join(", "))
        }
    }
}

// Names

pub(crate) fn not_a_name(name: &str) -> String {
    match name {
        "_" => "`_` is not a name: give it one, such as `_rest`".into(),
        _ => format!("`{name}` cannot be a name"),
    }
}

pub(crate) fn keyword(what: &str, word: &str) -> String {
    format!("expected {what}, found the keyword `{word}` (as a name it is written `r#{word}`)")
}

pub(crate) fn path_in_place_of_name() -> String {
    "expected a single name, found a path: a layer is brought in with `use`, a function is called by its name".into()
}

// Limits

pub(crate) fn nested_too_deep(limit: u32) -> String {
    format!("more than {limit} brackets inside each other")
}

pub(crate) fn expression_too_deep(limit: u32) -> String {
    format!("this expression is more than {limit} operations deep: name a part of it with `let`")
}

// Items

pub(crate) const ITEM: &str = "`use`, `layer` or `model`";

pub(crate) fn unknown_item(found: &str, word: &str) -> String {
    format!("{}{}", expected(ITEM, found), did_you_mean(word, ["use", "layer", "model"]))
}

pub(crate) fn use_public() -> String {
    "a re-export of a layer is ordinary Rust: write this `pub use` outside of `model!`".into()
}

pub(crate) fn use_glob() -> String {
    "`model!` cannot see what a `*` brings in: name each layer".into()
}

pub(crate) fn use_of_no_layer() -> String {
    "`use` in `model!` brings in layers: name one".into()
}

pub(crate) fn instance_of_layer(name: &str) -> String {
    format!("only a model can be an instance of another: write `model {name} = ..`")
}

pub(crate) fn runtime_dimension_of_layer(name: &str) -> String {
    format!(
        "runtime dimensions belong to models: drop `{name}` here and use it in the types of functions, the call binds it"
    )
}

pub(crate) fn required_dimension_of_model(name: &str) -> String {
    format!("nobody passes `{name}` to a model: give it a default (`{name} = 128`) or a range (`{name} in 1..=128`)")
}

pub(crate) fn dollar() -> String {
    "`$` has no meaning here".into()
}

pub(crate) fn cfg_inside() -> String {
    "conditions do not reach into `model!`: put this on the whole invocation".into()
}

// What comes from elsewhere

/// `src/norm.rs:12`, or the line alone where the compiler or the editor has no file to tell.
pub(crate) fn place(span: Span) -> String {
    match (span.file(), span.start().line) {
        (file, line) if file.is_empty() => format!("line {line}"),
        (file, line) => format!("{file}:{line}"),
    }
}

pub(crate) fn inside_layer(layer: &str, place: &str) -> String {
    format!("\n       in `{layer}`, {place}")
}

pub(crate) fn defined_at(layer: &str, place: &str) -> String {
    format!("\n       `{layer}` is defined in {place}")
}

pub(crate) fn protocol(name: &str, found: &str, here: &str) -> String {
    format!(
        "`{name}` was built with another version of this crate (layer protocol {found}, here {here}): \
         use the same version in both crates"
    )
}

pub(crate) fn called_as_macro(name: &str) -> String {
    format!("`{name}` is for `model!`, which brings it in with `use`")
}

// Attributes

pub(crate) const ATTRIBUTES: [&str; 8] =
    ["name", "frozen", "store", "precision", "checkpoint", "train", "ignore", "doc"];

pub(crate) fn unknown_attribute(name: &str) -> String {
    let near = did_you_mean(name, ATTRIBUTES);
    let hint = if near.is_empty() { format!(", expected {}", alternatives(&ATTRIBUTES)) } else { near };
    format!("unknown attribute `{name}`{hint}")
}

pub(crate) fn misplaced_attribute(name: &str, place: &str, allowed: &[&str]) -> String {
    format!("`#[{name}]` has no meaning on {place}, expected {}", alternatives(allowed))
}

pub(crate) fn train_of_no_entry() -> String {
    "`#[train]` belongs on a `pub fn` of a model".into()
}

pub(crate) fn attribute_of_no_member(name: &str) -> String {
    format!("`#[{name}]` has no meaning here: attributes belong on items and members")
}

pub(crate) fn repeated_attribute(name: &str) -> String {
    format!("`#[{name}]` is given twice")
}

pub(crate) fn attribute_form(form: &str, found: &str) -> String {
    expected(&format!("`#[{form}]`"), found)
}

// Members

pub(crate) const MEMBER: &str = "a member";

pub(crate) fn after_member(name: Option<&str>, found: &str) -> String {
    let after = name.map_or_else(String::new, |name| format!(" after `{name}`"));
    expected(&format!("`,` or `;`{after}"), found)
}

pub(crate) fn type_in_place_of_layer(name: &str, element: &str) -> String {
    format!("`{element}` is a type, not a layer: a tensor is written `param {name}: {element}[n] = zeros`")
}

pub(crate) fn missing_fn(name: &str) -> String {
    format!("expected `fn` before `{name}`")
}

pub(crate) fn public_member(name: &str) -> String {
    format!("only functions of a model are public: drop the `pub` before `{name}`")
}

pub(crate) fn state_initialiser() -> String {
    "a state starts at zero and has no initialiser".into()
}

pub(crate) fn missing_initialiser(role: &str, found: &str) -> String {
    expected(&format!("`=` and the initialiser of the {role}, such as `= zeros`"), found)
}

pub(crate) fn parentheses_of_layer() -> String {
    "the arguments of a layer stand between `<` and `>`".into()
}

pub(crate) fn layer_as_argument() -> String {
    "arguments between `<` and `>` are numbers or lists of them, never layers or comparisons (a `let` may name one)"
        .into()
}

pub(crate) fn positional_after_named() -> String {
    "positional arguments come before named ones".into()
}

// Types

pub(crate) fn unknown_type(name: &str, elements: &[&str]) -> String {
    let near = did_you_mean(name, elements.iter().copied());
    let hint = if near.is_empty() { format!(", expected {}", alternatives(elements)) } else { near };
    format!("unknown type `{name}`{hint}")
}

pub(crate) fn late_leading_axes() -> String {
    "`..` stands for leading axes: it comes first".into()
}

pub(crate) fn axis_without_size() -> String {
    "expected the size of an axis: a name that stands only in types is bound by the call, any leading axes are `..`"
        .into()
}

pub(crate) fn leading_axes_of_member() -> String {
    "a stored tensor has all its axes written out: `..` is for functions".into()
}

pub(crate) fn no_axes(element: &str) -> String {
    format!("a tensor without axes is a scalar: write `{element}`")
}

pub(crate) fn tuple_member() -> String {
    "a stored tensor has one type, not a tuple".into()
}

pub(crate) fn empty_tuple() -> String {
    "expected types between `(` and `)`".into()
}

pub(crate) fn bounds_of_tensor() -> String {
    "only a `u32` scalar has bounds".into()
}

pub(crate) fn mutable_parameter(name: &str) -> String {
    format!("parameters are not `mut`: write `let mut {name} = {name};` inside")
}

pub(crate) fn self_parameter() -> String {
    "there is no `self`: members are used by their names".into()
}

// Statements

pub(crate) fn typed_let(name: &str) -> String {
    format!("types of locals are inferred: write `let {name} = ..;`")
}

pub(crate) fn not_assignable() -> String {
    "only a local, a buffer or a slice of a state stands on the left of `=`".into()
}

pub(crate) fn tuple_assignment() -> String {
    "parts of a tuple are bound by `let (a, b) = ..;`".into()
}

pub(crate) fn unpaired_loop(names: usize, arrays: usize) -> String {
    format!("each array of a loop needs one name: expected {arrays}, found {names}")
}

pub(crate) fn range_needs_one_name() -> String {
    "a range gives one number at a time: write `for i in ..`".into()
}

pub(crate) fn python_loop(function: &str) -> String {
    match function {
        "range" => "a loop over numbers is written `for i in 0..n`".into(),
        "enumerate" => "a loop that counts is written `for (i, layer) in layers`".into(),
        _ => "a loop over two arrays is written `for (a, b) in (layers, others)`".into(),
    }
}

pub(crate) fn loop_names() -> String {
    "several names of a loop stand in parentheses: `for (i, layer) in layers`".into()
}

pub(crate) fn missing_else() -> String {
    "an `if` with a value needs an `else`".into()
}

pub(crate) fn while_loop() -> String {
    "loops run a fixed number of times: write `for i in 0..n`".into()
}

pub(crate) fn return_habit() -> String {
    "there is no `return`: the last expression, without `;`, is the result".into()
}

pub(crate) fn elif_habit() -> String {
    "`elif` is written `else if`".into()
}

// Expressions

pub(crate) const VALUE: &str = "a value";

pub(crate) fn chained_comparison(first: &str, second: &str) -> String {
    format!("comparisons do not chain: write `(a {first} b) & (b {second} c)`, with the parentheses")
}

pub(crate) fn word_operator(word: &str) -> String {
    let symbol = match word {
        "and" => "&",
        "or" => "|",
        _ => "!",
    };
    format!("`{word}` is written `{symbol}`")
}

pub(crate) fn doubled_operator(operator: &str) -> String {
    format!("`{operator}` is written `{}`", &operator[..1])
}

pub(crate) fn power() -> String {
    "a power is written `pow(a, b)`, `**` is not an operator".into()
}

pub(crate) fn no_operator(operator: &str) -> String {
    format!("there is no operator `{operator}`")
}

pub(crate) fn tilde() -> String {
    "`~` is written `!`".into()
}

pub(crate) fn python_if() -> String {
    "a choice is written `if flag { a } else { b }`, one for each element `where(mask, a, b)`".into()
}

pub(crate) fn leading_point(digits: &str) -> String {
    format!("a number starts with a digit: write `0.{digits}`")
}

pub(crate) fn python_slice() -> String {
    "`:` does not slice: a part of an axis is written `x[a..b]`, the whole of it `..`".into()
}

pub(crate) fn slice_step() -> String {
    "slices have no step: a part of an axis is written `x[a..b]`, the whole of it `..`".into()
}

pub(crate) fn ellipsis() -> String {
    "`...` is written `..`".into()
}

pub(crate) fn empty_index() -> String {
    "expected an index or a slice between `[` and `]`".into()
}

pub(crate) fn range_outside() -> String {
    "a range stands in `x[a..b]` or `for i in a..b` only".into()
}

pub(crate) fn not_callable() -> String {
    "only layers and functions can be called".into()
}

pub(crate) fn tuple_field() -> String {
    "parts of a tuple are bound by `let (a, b) = ..;`".into()
}

pub(crate) fn inline_layer(name: &str) -> String {
    format!("a layer is a member: declare `name: {name}<..>` above and call `name`")
}

pub(crate) fn hole() -> String {
    "`_` is not a value: it stands for one size in the list of `reshape`".into()
}

pub(crate) fn assignment_in_expression() -> String {
    "`=` does not compare: write `==`".into()
}

// Literals

pub(crate) fn number_suffix(number: &str, suffix: &str) -> String {
    format!("numbers have no type suffix here: write `{number}`, not `{number}{suffix}`")
}

pub(crate) fn number_too_large() -> String {
    "this number is too large".into()
}

pub(crate) fn not_a_value(literal: &str) -> String {
    format!("expected a number or a value, found `{literal}`")
}

// The compiler itself

pub(crate) fn no_derivative(reason: &str) -> String {
    format!("a loss needs a derivative that does not exist: {reason}")
}

pub(crate) fn fault(model: &str, stage: &str, problem: &str) -> String {
    format!(
        "meganeura has a fault: `{model}` cannot be compiled, as found after `{stage}`\n{problem}\n\
         please report it with the text of the model"
    )
}
