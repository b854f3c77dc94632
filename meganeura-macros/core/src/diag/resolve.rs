//! Messages about names, values, shapes and types.

use super::did_you_mean;

/// What the language has and this version does not; one wording for all of it.
pub(crate) fn not_available(what: &str) -> String {
    format!("{what} is not available yet")
}

/// A fault of the compiler, not of the user.
pub(crate) fn internal(entry: &str, fault: &str) -> String {
    format!("internal error in `{entry}` after `resolve`: {fault}\n       please report it, with the model")
}

/// ", did you mean `a`?" or ", expected one of `a`, `b`"
fn instead(name: &str, known: &[&str]) -> String {
    let near = did_you_mean(name, known.iter().copied());
    match known {
        [] => String::new(),
        _ if !near.is_empty() => near,
        [only] => format!(", expected `{only}`"),
        _ => {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!(", expected one of {}", known.join(", "))
        }
    }
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("{number} {what}") } else { format!("{number} {what}s") }
}

// Items and members

pub(crate) fn repeated_item(name: &str, line: usize) -> String {
    format!("`{name}` is defined twice, first on line {line}")
}

pub(crate) fn repeated_member(name: &str, line: usize) -> String {
    format!("`{name}` is declared twice, first on line {line}")
}

pub(crate) fn repeated_parameter(name: &str) -> String {
    format!("`{name}` is declared twice")
}

pub(crate) fn cycle(path: &[&str]) -> String {
    let [name, ..] = path else { return "a layer contains itself".into() };
    match path.len() {
        2 => format!("`{name}` contains itself"),
        _ => format!("`{name}` contains itself: {}", path.join(" → ")),
    }
}

pub(crate) fn generated_method(name: &str, model: &str) -> String {
    format!("`{name}` is a method that `{model}` has anyway: give the entry another name")
}

pub(crate) fn unknown_layer<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    format!("unknown layer `{name}`{}", did_you_mean(name, known))
}

pub(crate) fn newer_layer(name: &str) -> String {
    format!("`{name}` is not built into this version of the crate")
}

pub(crate) fn instance_of_a_layer(name: &str) -> String {
    format!("`{name}` is a layer: only a model has instances")
}

pub(crate) fn colliding_tensors(name: &str, line: usize) -> String {
    format!("two tensors are called `{name}`, the first on line {line}: give one a `#[name = \"..\"]`")
}

pub(crate) fn empty_array(name: &str, length: i64) -> String {
    format!("an array has at least 1 layer, found {length} in `{name}`")
}

pub(crate) fn array_length(name: &str, found: &str) -> String {
    format!("the length of `{name}` is a constant integer, found {found}")
}

pub(crate) fn result_of_bytes() -> String {
    "`u8` is for arguments: their bytes are brought in as u32, so the result is `u32`".into()
}

pub(crate) fn parameter_type(role: &str, found: &str) -> String {
    format!("a `{role}` has elements of f32, found {found}")
}

pub(crate) fn runtime_size_of_tensor(tensor: &str, size: &str) -> String {
    format!("the sizes of `{tensor}` are constants, found the runtime dimension `{size}`")
}

pub(crate) fn dimension_kind(dimension: &str, layer: &str, expected: &str, found: &str) -> String {
    format!("`{dimension}` of `{layer}` is {expected}, found {found}")
}

pub(crate) fn too_many_layers(limit: u32) -> String {
    format!("more than {limit} layers in one model (an array counts once)")
}

pub(crate) fn empty_axis(tensor: &str, size: i64) -> String {
    format!("an axis of `{tensor}` is at least 1, found {size}")
}

pub(crate) fn initialiser_expected(found: &str, number: Option<f64>) -> String {
    match number {
        Some(number) => format!("expected an initialiser, found {found}: write `constant({number})`"),
        None => format!("expected an initialiser, such as `zeros` or `normal(0.02)`, found {found}"),
    }
}

pub(crate) fn initialiser_axes(found: usize) -> String {
    format!("this initialiser counts inputs and outputs: expected at least 2 axes, found {found}")
}

pub(crate) fn empty_interval(low: f64, high: f64) -> String {
    format!("the low end of `uniform` is {low}, its high end {high}: expected the lower one first")
}

pub(crate) fn negative_deviation(found: f64) -> String {
    format!("a standard deviation is not negative, found {found}")
}

pub(crate) fn not_constant(found: &str) -> String {
    format!("expected a constant: arithmetic over numbers and dimensions, found {found}")
}

// Dimensions

pub(crate) fn bound_expected(found: &str) -> String {
    format!("a bound is a constant integer, found {found}")
}

pub(crate) fn step(found: &str) -> String {
    format!("a step is a constant integer of at least 1, found {found}")
}

pub(crate) fn empty_range(low: i64, high: i64) -> String {
    format!("the range is empty: its least value is {low}, its greatest {high}")
}

pub(crate) fn low_of_dimension(name: &str, low: i64) -> String {
    format!("the dimension `{name}` is at least 1, found {low}")
}

pub(crate) fn low_of_argument(name: &str, low: i64) -> String {
    format!("`{name}` is u32 and not negative, found {low}")
}

pub(crate) fn unbound_dimension(name: &str, on: &str, function: &str) -> String {
    let what = if name == on { format!("`{name}` is") } else { format!("`{name}` depends on `{on}`, which is") };
    if function.is_empty() {
        return format!("{what} bound by calls and no constant");
    }
    format!("{what} not known in `{function}`: no argument of the entry has it in its type")
}

pub(crate) fn unsolvable_dimension(name: &str, entry: &str) -> String {
    format!(
        "`{name}` does not follow from the sizes of the arguments of `{entry}`: give one argument an axis of `{name}`"
    )
}

pub(crate) fn unknown_size<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, model: bool) -> String {
    let near = did_you_mean(name, known);
    let hint = match (near.is_empty(), model) {
        (false, _) => near,
        (true, true) => format!(": a runtime dimension is declared between `<` and `>`, `{name} in 1..=256`"),
        (true, false) => ": no parameter has it in its type".into(),
    };
    format!("unknown size `{name}`{hint}")
}

pub(crate) fn size_of_values(function: &str, parameter: &str) -> String {
    format!("`{function}` uses `{parameter}` as a size: expected a constant or a bounded argument, found a value")
}

pub(crate) fn dimension_as_argument(name: &str) -> String {
    format!("`{name}` is a member or dimension already: give the argument another name")
}

pub(crate) fn size_expected(found: &str) -> String {
    format!("expected a size, found {found}")
}

pub(crate) fn too_large() -> String {
    "this number is too large".into()
}

pub(crate) fn too_many_elements(shape: &str) -> String {
    format!("a tensor of shape {shape} is too large")
}

pub(crate) fn empty_shape(shape: &str, size: &str) -> String {
    format!("every axis is at least 1, found {size} in {shape}")
}

pub(crate) fn inexact_division(a: &str, b: &str, rest: Option<i64>, step: Option<i64>) -> String {
    match (rest, step) {
        (Some(rest), _) => format!("{a} / {b} leaves a rest of {rest}: sizes divide exactly"),
        (None, Some(step)) => {
            format!("{a} / {b} may leave a rest: sizes divide exactly (a runtime dimension by its `step {step}`)")
        }
        (None, None) => format!("{a} / {b} may leave a rest: sizes divide exactly"),
    }
}

pub(crate) fn division_by_zero() -> String {
    "division by 0".into()
}

pub(crate) fn comparison_of_size(size: &str) -> String {
    format!("{size} is not known before a call, so nothing can depend on how it compares")
}

// Names

pub(crate) fn unknown_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    format!("unknown name `{name}`{}", did_you_mean(name, known))
}

pub(crate) fn absent_member(name: &str) -> String {
    format!("`{name}` does not exist here: it is declared later, or on a condition that does not hold")
}

pub(crate) fn function_as_value(name: &str) -> String {
    format!("`{name}` is a function: call it")
}

pub(crate) fn layer_as_function(name: &str) -> String {
    format!("a layer is a member: declare `name: {name}<..>` above and call `name`")
}

pub(crate) fn no_member(layer: &str, name: &str, known: &[&str]) -> String {
    format!("`{layer}` has no member `{name}`{}", instead(name, known))
}

pub(crate) fn no_function(layer: &str, name: &str, known: &[&str]) -> String {
    format!("`{layer}` has no function `{name}`{}", instead(name, known))
}

pub(crate) fn field_of_array(name: &str) -> String {
    format!("`{name}` is an array of layers: take them one by one, `for layer in {name}`")
}

pub(crate) fn call_of_array(name: &str) -> String {
    format!("`{name}` is an array of layers: call them one by one, `for layer in {name} {{ x = layer(x); }}`")
}

pub(crate) fn field_of_tensor(name: &str) -> String {
    match name {
        "T" | "mT" => "the last two axes are swapped by `.t()`".into(),
        "shape" | "size" => "sizes are known by name: give the axis one in the type of the function".into(),
        _ => format!("a tensor has no member `{name}`"),
    }
}

pub(crate) fn field_of_other(name: &str, found: &str) -> String {
    format!("only layers have members: `{name}` of {found}")
}

pub(crate) fn not_callable(found: &str) -> String {
    format!("only layers and functions can be called, found {found}")
}

// Calls

pub(crate) fn too_many_arguments(callee: &str, least: usize, most: usize, found: usize) -> String {
    let bound = if least < most { "at most " } else { "" };
    format!("`{callee}` takes {bound}{}, found {found}", count(most, "argument"))
}

pub(crate) fn missing_argument(callee: &str, name: &str, least: usize, most: usize, found: usize) -> String {
    let bound = if least < most { "at least " } else { "" };
    format!("`{callee}` takes {bound}{}, found {found}: `{name}` is missing", count(least, "argument"))
}

pub(crate) fn repeated_argument(callee: &str, name: &str) -> String {
    format!("`{name}` of `{callee}` is given twice")
}

pub(crate) fn unknown_argument(callee: &str, name: &str, known: &[&str]) -> String {
    if let Some(ours) = argument_habit(name).filter(|ours| known.contains(ours)) {
        return format!("the argument `{name}` is called `{ours}` here");
    }
    let hint = if known.is_empty() { ": it takes none".into() } else { instead(name, known) };
    format!("`{callee}` has no argument `{name}`{hint}")
}

/// What PyTorch and NumPy call an argument.
fn argument_habit(name: &str) -> Option<&'static str> {
    Some(match name {
        "dim" | "dims" | "axes" => "axis",
        "keepdim" | "keepdims" | "keep_dims" => "keep",
        "unbiased" | "ddof" => "correction",
        "ord" => "p",
        "negative_slope" => "slope",
        "input" | "inputs" | "self" => "x",
        "other" | "exponent" => "y",
        "a_min" | "min" | "lo" => "low",
        "a_max" | "max" | "hi" => "high",
        "start_dim" | "start" => "from",
        "end_dim" | "end" => "to",
        "condition" | "cond" => "mask",
        "labels" => "label",
        "epsilon" => "eps",
        "in_features" => "in",
        "out_features" => "out",
        "normalized_shape" | "hidden_size" => "dim",
        "size" | "newshape" => "shape",
        "fill_value" => "value",
        "beta" => "delta",
        _ => return None,
    })
}

/// What PyTorch and NumPy call a function.
pub(crate) fn function_habit(name: &str) -> Option<String> {
    let ours = match name {
        "matmul" | "mm" | "bmm" | "dot" | "linear" => return Some(format!("`{name}` is written `a @ b`")),
        "unsqueeze" | "squeeze" | "expand_dims" => {
            return Some(format!("`{name}` is written `reshape(x, [..])`, with or without an axis of 1"));
        }
        "T" => return Some("the last two axes are swapped by `.t()`".into()),
        "shape" | "size" => {
            return Some("sizes are known by name: give the axis one in the type of the function".into());
        }
        "add" | "sub" | "mul" | "div" | "subtract" | "multiply" | "divide" => {
            let sign = match &name[..3] {
                "add" => "+",
                "sub" => "-",
                "mul" => "*",
                _ => "/",
            };
            return Some(format!("`{name}` is written `a {sign} b`"));
        }
        "view" => "reshape",
        "cat" | "concatenate" => "concat",
        "expand" | "broadcast_to" => "broadcast",
        "swapaxes" | "swapdims" => "transpose",
        "moveaxis" | "movedim" => "permute",
        "maximum" | "amax" => "max",
        "minimum" | "amin" => "min",
        "clip" => "clamp",
        "absolute" => "abs",
        "power" => "pow",
        "square" => return Some("`square` is written `pow(x, 2)`".into()),
        "reciprocal" => "recip",
        "float" | "astype" => "f32",
        "nll_loss" | "cross_entropy_loss" | "softmax_cross_entropy" => "cross_entropy",
        "mse_loss" => "mse",
        "l1_loss" | "mae" => "l1",
        "huber_loss" | "smooth_l1_loss" => "huber",
        "binary_cross_entropy_with_logits" => "bce_with_logits",
        "swish" => "silu",
        "detach" => "stop_gradient",
        "take_along_axis" => "gather",
        "variance" => "var",
        _ => return None,
    };
    Some(format!("`{name}` is called `{ours}` here"))
}

pub(crate) fn recursive_function(name: &str) -> String {
    format!("`{name}` calls itself: functions are inlined, so none may")
}

pub(crate) fn too_many_calls(limit: u32) -> String {
    format!("more than {limit} calls in one entry")
}

pub(crate) fn too_deep(limit: u32) -> String {
    format!("more than {limit} expressions and calls inside each other")
}

// Types

/// Whose type it is.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// The only argument of a layer.
    Input { layer: String },
    /// An argument.
    Parameter { function: String, parameter: String },
    /// What a function gives.
    Result { function: String },
}

impl Subject {
    fn expects(&self) -> String {
        match self {
            Subject::Input { layer } => format!("`{layer}` expects its input"),
            Subject::Parameter { function, parameter } => format!("`{function}` expects `{parameter}`"),
            Subject::Result { function } => format!("`{function}` declares its result"),
        }
    }

    fn to_be(&self) -> &'static str {
        if matches!(self, Subject::Result { .. }) { "as" } else { "to be" }
    }

    fn expects_part(&self, part: &str) -> String {
        match self {
            Subject::Input { layer } => format!("`{layer}` expects its input's {part}"),
            Subject::Parameter { function, parameter } => format!("`{function}` expects the {part} of `{parameter}`"),
            Subject::Result { function } => format!("`{function}` declares the {part} of its result"),
        }
    }
}

pub(crate) fn type_mismatch(subject: &Subject, expected: &str, found: &str) -> String {
    format!("{} {} {expected}, found {found}", subject.expects(), subject.to_be())
}

pub(crate) fn axis_mismatch(
    subject: &Subject,
    axis: &str,
    expected: &str,
    origin: Option<&str>,
    found: &str,
) -> String {
    let origin = origin.map_or_else(String::new, |origin| format!(" (`{origin}`)"));
    format!("{} {} {expected}{origin}, found {found}", subject.expects_part(axis), subject.to_be())
}

pub(crate) fn leading_mismatch(subject: &Subject, expected: &str, found: &str) -> String {
    format!("{} {} {expected}, found {found}", subject.expects_part("leading axes (`..`)"), subject.to_be())
}

pub(crate) fn outside_range(subject: &Subject, low: i64, high: i64, found: &str) -> String {
    format!("{} {} in {low}..={high}, found {found}", subject.expects(), subject.to_be())
}

pub(crate) fn operand_type(operator: &str, expected: &str, found: &str) -> String {
    format!("`{operator}` expects {expected}, found {found}")
}

pub(crate) fn argument_type(function: &str, parameter: &str, expected: &str, found: &str) -> String {
    format!("`{function}` expects `{parameter}` to be {expected}, found {found}")
}

pub(crate) fn mixed_types(operator: &str, first: &str, second: &str) -> String {
    let hint = match (first, second) {
        ("f32", "bool") | ("bool", "f32") => ": a mask chooses with `where(mask, a, b)`",
        ("f32", _) | (_, "f32") => ": `f32(..)` converts",
        _ => "",
    };
    format!("`{operator}` expects one element type, found {first} and {second}{hint}")
}

pub(crate) fn size_in_place_of_value(size: &str, dtype: &str) -> String {
    format!("{size} is a runtime integer, expected {dtype}: write `{dtype}(..)` around it")
}

pub(crate) fn conversion(function: &str, found: &str) -> String {
    format!("`{function}` converts tensors, numbers and dimensions, found {found}")
}

pub(crate) fn condition_on_elements() -> String {
    "the condition of an `if` is a constant: for each element write `where(mask, a, b)`".into()
}

pub(crate) fn condition_type(found: &str) -> String {
    format!("the condition of an `if` is a constant bool, found {found}")
}

pub(crate) fn number_expected(function: &str, found: &str) -> String {
    format!("`{function}` expects numbers that are known now, found {found}")
}

pub(crate) fn no_finite_result(function: &str) -> String {
    format!("`{function}` of this number is not finite")
}

// Shapes

pub(crate) fn broadcast(operator: &str, axis: &str, first: &str, second: &str) -> String {
    format!("the operands of `{operator}` do not broadcast: their {axis} is {first} and {second}")
}

pub(crate) fn matmul_mismatch(axis: &str, expected: &str, found: &str) -> String {
    format!(
        "`@` expects the {axis} of its right side to be {expected}, as the last axis of its left side, found {found}"
    )
}

pub(crate) fn matmul_of_scalar() -> String {
    "`@` expects tensors of at least 1 axis: a scalar is multiplied by `*`".into()
}

pub(crate) fn mask_shape(function: &str) -> String {
    format!("the mask of `{function}` does not broadcast with the values")
}

pub(crate) fn reshape_count(wanted: &str, found: &str) -> String {
    format!("`reshape` keeps the number of elements: expected {found}, found {wanted}")
}

pub(crate) fn reshape_rest(elements: &str, known: &str) -> String {
    format!("`_` cannot be found: {elements} elements do not divide by {known}")
}

pub(crate) fn two_holes() -> String {
    "`reshape` can find one size: expected one `_`".into()
}

pub(crate) fn hole_outside_reshape(function: &str) -> String {
    format!("`{function}` needs every size: only `reshape` can find a `_`")
}

pub(crate) fn flatten_order(from: usize, to: usize) -> String {
    format!("`flatten` goes from an axis to a later one, found {from} and {to}")
}

pub(crate) fn permutation_length(expected: usize, found: usize) -> String {
    format!("`permute` names every axis once: expected {expected}, found {found}")
}

pub(crate) fn transpose_rank(found: usize) -> String {
    format!("`.t()` swaps the last two axes: expected at least 2, found {found}")
}

pub(crate) fn broadcast_shape(from: &str, to: &str) -> String {
    format!("{from} does not broadcast to {to}")
}

pub(crate) fn axis_outside(function: &str, axis: i64, rank: usize) -> String {
    match rank {
        0 => format!("`{function}` has no axis {axis}: its argument is a scalar"),
        _ => {
            format!("`{function}` has no axis {axis}: its argument has {}, -{rank} to {}", count(rank, "axe"), rank - 1)
        }
    }
    .replace("1 axe,", "1 axis,")
}

pub(crate) fn repeated_axis(function: &str) -> String {
    format!("`{function}` is given one axis twice")
}

pub(crate) fn no_axes(function: &str) -> String {
    format!("`{function}` is given no axis: leave `axis` out to reduce all")
}

pub(crate) fn axis_or_operand(function: &str, found: &str, list: bool) -> String {
    match list {
        true => format!("`{function}` over axes is written `axis = {found}`"),
        false => format!(
            "`{function}` with {found} could mean an axis or an operand: write `axis = {found}`, or `{function}(x, {found}.0)`"
        ),
    }
}

pub(crate) fn axis_and_operand(function: &str) -> String {
    format!("`{function}` of two operands has no axis")
}

pub(crate) fn correction(found: f64) -> String {
    format!("a correction is an integer of at least 0, found {found}")
}

pub(crate) fn norm(found: f64) -> String {
    format!("a norm has a `p` of at least 1, found {found:?}")
}

pub(crate) fn tensors_to_join(function: &str, found: &str) -> String {
    format!("`{function}` expects a list of tensors of one element type, found {found}")
}

pub(crate) fn joined_shapes(function: &str, axis: usize, first: &str, other: &str) -> String {
    format!("`{function}` expects shapes that differ on axis {axis} alone, found {first} and {other}")
}

pub(crate) fn stacked_shapes(first: &str, other: &str) -> String {
    format!("`stack` expects equal shapes, found {first} and {other}")
}

pub(crate) fn split_parts(size: &str, found: &str) -> String {
    format!("`split` cuts an axis of {size} into equal parts or into sizes that make it up, found {found}")
}

pub(crate) fn padding(rank: usize, found: &str) -> String {
    format!(
        "`pad` expects a list of `[before, after]`, one for each of the last axes and at most {rank}, found {found}"
    )
}

pub(crate) fn scalar_value(function: &str, found: &str) -> String {
    format!("`{function}` expects `value` to be one number, found {found}")
}

pub(crate) fn positive_count(function: &str, parameter: &str, found: &str) -> String {
    format!("`{function}` expects `{parameter}` to be a size of at least 1, found {found}")
}

pub(crate) fn whole_number(function: &str, parameter: &str, found: &str) -> String {
    format!("`{function}` expects `{parameter}` to be a whole number that is known now, found {found}")
}

pub(crate) fn most_of_axis(function: &str, k: i64, size: &str) -> String {
    format!("`{function}` takes at most as many as the axis has, found {k} of {size}")
}

pub(crate) fn matrix_rank(function: &str, rank: usize) -> String {
    format!("`{function}` works on the last two axes, found {rank}")
}

pub(crate) fn ids_of_axes(function: &str, axis: usize) -> String {
    format!("`{function}` expects ids with the axes of `x`, of its sizes or 1 except on axis {axis}")
}

pub(crate) fn scattered_values(axis: usize, found: &str, expected: &str) -> String {
    format!("`scatter_add` expects values of the shape of `x` with an axis {axis} of {expected}, found {found}")
}

pub(crate) fn ids_expected(found: &str) -> String {
    format!("ids are u32, found {found}")
}

pub(crate) fn second_ids() -> String {
    not_available("a second tensor of ids in one index")
}

pub(crate) fn einsum_text() -> String {
    "`einsum` begins with its labels as a text: `einsum(\"bik,bkj->bij\", a, b)`".into()
}

pub(crate) fn einsum_letters(text: &str) -> String {
    format!("the labels of `einsum` are letters, `,` between operands and `->` before the result, found `{text}`")
}

pub(crate) fn einsum_operands(labels: usize, operands: usize) -> String {
    format!("`einsum` has labels for {}, found {}", count(labels, "operand"), count(operands, "operand"))
}

pub(crate) fn einsum_rank(labels: &str, found: &str) -> String {
    format!(
        "the labels `{labels}` name {}, found {found}",
        count(labels.chars().count(), "axis").replace("axiss", "axes")
    )
}

pub(crate) fn einsum_size(label: char, first: &str, other: &str) -> String {
    format!("label `{label}` of `einsum` stands for {first} and for {other}")
}

pub(crate) fn einsum_result(label: char) -> String {
    format!("label `{label}` of the result of `einsum` must stand in one operand, and once in the result")
}

pub(crate) fn share(function: &str, parameter: &str, found: f64) -> String {
    format!("`{function}` expects `{parameter}` in 0..=1, found {found:?}")
}

pub(crate) fn rows_of_scalar(function: &str) -> String {
    format!("`{function}` works along an axis, found a scalar")
}

pub(crate) fn label_shape(expected: &str, found: &str) -> String {
    format!("`cross_entropy` expects one label for each row of logits, {expected}, found {found}")
}

pub(crate) fn loss_shapes(function: &str) -> String {
    format!("`{function}` expects two tensors of one shape")
}

// Attention

pub(crate) fn attention_axes() -> String {
    "`attention` expects `[.., rows, heads, width]`, or `[rows, width]` for one head".into()
}

pub(crate) fn attention_shapes() -> String {
    "`attention` expects queries `[.., queries, heads, width]`, keys `[.., keys, kv_heads, width]` and values `[.., keys, \
     kv_heads, any]` with equal axes in front, and `kv_heads` to divide `heads`"
        .into()
}

pub(crate) fn attention_scale(width: &str) -> String {
    format!("`attention` needs `scale` where the width of a head is no number, found {width}")
}

pub(crate) fn attention_mask(expected: &str, found: &str) -> String {
    format!("a mask of `attention` is a bool or f32 tensor that broadcasts to {expected}, found {found}")
}

pub(crate) fn rope_axes() -> String {
    "`rope` expects `[.., rows, heads, width]` or `[rows, width]`".into()
}

pub(crate) fn rope_theta(found: f64) -> String {
    format!("`rope` expects `theta` above 0, found {found:?}")
}

pub(crate) fn rope_dims(head: &str, found: &str) -> String {
    format!("`rope` turns an even number of elements, of a head that has {head}, found {found}")
}

pub(crate) fn rope_positions(rows: &str, found: &str) -> String {
    format!("`rope` expects one position for each row, of shape {rows} or its last axes, found {found}")
}

// Indices

pub(crate) fn not_indexable(found: &str) -> String {
    format!("only tensors have parts, found {found}")
}

pub(crate) fn index_type(found: &str) -> String {
    format!("an index is an integer or a dimension, found {found}")
}

pub(crate) fn too_many_indices(expected: usize, found: usize) -> String {
    format!(
        "expected at most {}, found {found}",
        if expected == 1 { "1 index".into() } else { format!("{expected} indices") }
    )
}

pub(crate) fn ambiguous_whole_axis(rank: usize, found: usize) -> String {
    format!("each `..` stands for one axis: expected {rank} indices, found {found}")
}

pub(crate) fn outside_axis(written: &str, axis: usize, size: &str) -> String {
    format!("{written} lies outside of axis {axis}, which has {size}")
}

pub(crate) fn outside_list(length: usize) -> String {
    format!("the list has {}", count(length, "element"))
}

// Statements

pub(crate) fn value_expected() -> String {
    "expected a value, found a function without a result".into()
}

pub(crate) fn tuple_length(names: usize, values: usize) -> String {
    format!("expected {}, found {values}", count(names, "value"))
}

pub(crate) fn tuple_expected(names: usize, found: &str) -> String {
    format!("expected a tuple of {}, found {found}", count(names, "value"))
}

pub(crate) fn assigned_member(name: &str, tensor: bool) -> String {
    match tensor {
        true => format!("`{name}` is a parameter of the model: training changes it, functions do not"),
        false => format!("`{name}` is a member, only locals change: write `let mut` and another name"),
    }
}

pub(crate) fn assigned_parameter(name: &str) -> String {
    format!("`{name}` is an argument and does not change: write `let mut {name} = {name};` first")
}

pub(crate) fn assigned_fixed(name: &str) -> String {
    format!("`{name}` does not change: declare it with `let mut {name}`")
}

pub(crate) fn assigned_ids() -> String {
    "elements that ids pick are not assigned: `scatter_add(x, ids, values, axis)` adds to them".into()
}

pub(crate) fn assigned_part(name: &str, expected: &str, found: &str) -> String {
    format!("this part of `{name}` is {expected}, found {found}")
}

pub(crate) fn assigned_buffer(what: &str, name: &str, expected: &str, found: &str) -> String {
    format!("the {what} `{name}` is {expected}, found {found}")
}

pub(crate) fn buffer_in_loop(what: &str, name: &str) -> String {
    format!("a loop that does not own the {what} `{name}` would write it again and again: assign it after the loop")
}

pub(crate) fn assigned_twice(what: &str, name: &str, line: usize) -> String {
    format!("the {what} `{name}` is assigned twice in one call, first on line {line}")
}

pub(crate) fn buffer_without_training() -> String {
    "a buffer changes in training steps only, and no `#[train]` reaches this assignment".into()
}

pub(crate) fn nested_result(entry: &str) -> String {
    format!("results of the entry `{entry}` are one tuple of tensors, found a tuple inside of it")
}

pub(crate) fn loop_over(found: &str, number: bool, tensor: bool) -> String {
    let hint = match (number, tensor) {
        (true, _) => ": a loop over numbers is written `for i in 0..n`",
        (_, true) => ": its parts are `x[i]` in `for i in 0..n`",
        _ => "",
    };
    format!("a loop goes over an array of layers, found {found}{hint}")
}

pub(crate) fn loop_bound(found: &str) -> String {
    format!("the bounds of a loop are constants or dimensions, found {found}")
}

pub(crate) fn empty_loop(low: &str, high: &str, always: bool) -> String {
    match always {
        true => format!("a loop runs at least once: nothing lies from {low} to {high}"),
        false => format!("a loop runs at least once: from {low} to {high} may be nothing"),
    }
}

pub(crate) fn unequal_arrays(first: &str, count: i64, second: &str, other: i64) -> String {
    format!("arrays of one loop are equally long: `{first}` has {count}, `{second}` has {other}")
}

pub(crate) fn negative_index(least: &str) -> String {
    format!("a number of a loop is u32 and not negative, found {least}")
}

pub(crate) fn moving_length() -> String {
    "the length of this part changes with the loop: expected one that stays, such as `x[i..i + 4]`".into()
}

pub(crate) fn moving_part(length: &str, most: i64) -> String {
    format!("parts that overlap from iteration to iteration have at most {most} rows, found {length}")
}

pub(crate) fn loop_outside_axis(low: &str, high: &str, axis: usize, size: &str) -> String {
    format!("the loop goes from {low} to {high}, outside of axis {axis}, which has {size}")
}

pub(crate) fn outside_array(name: &str, index: &str, count: i64) -> String {
    format!("{index} lies outside of `{name}`, which has {}", self::count(count.unsigned_abs() as usize, "layer"))
}

pub(crate) fn array_index(name: &str, found: &str) -> String {
    format!("`{name}` is an array of layers: expected a constant or the number of a loop, found {found}")
}

pub(crate) fn array_indices(name: &str, found: usize) -> String {
    format!("`{name}` is an array of layers: expected 1 index, found {found}")
}

pub(crate) fn value_of_loop() -> String {
    "a loop has no value: assign it to a `let mut` from outside".into()
}

pub(crate) fn carried_kind(name: &str, found: &str) -> String {
    format!("a loop changes tensors only, `{name}` is {found}")
}

pub(crate) fn carried_type(name: &str, expected: &str, found: &str) -> String {
    format!("`{name}` keeps its type through the loop: expected {expected}, found {found}")
}

// Functions and entries

pub(crate) fn undeclared_result(function: &str, found: &str) -> String {
    format!("`{function}` declares no result, found {found}: write `-> ..` before its body")
}

pub(crate) fn entry_without_result(entry: &str) -> String {
    format!("the entry `{entry}` has no result: write `-> ..` before its body")
}

pub(crate) fn tuple_argument(name: &str) -> String {
    format!("`{name}` is an argument of an entry, expected a tensor or a scalar, found a tuple")
}

pub(crate) fn leading_of_entry(name: &str) -> String {
    format!("`{name}` is an argument of an entry: write all its axes out")
}

pub(crate) fn loss_result(entry: &str, found: &str) -> String {
    format!("`#[train]` needs a loss: expected `{entry}` to give f32, or a tuple that starts with it, found {found}")
}

pub(crate) fn pattern_without_match(pattern: &str, names: &[&str]) -> String {
    format!("`{pattern}` names no parameter that is trained{}", did_you_mean(pattern, names.iter().copied()))
}
