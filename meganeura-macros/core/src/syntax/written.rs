//! Trees back to text, as people write them.

use super::{Argument, BinaryOp, Bounds, Expr, ExprKind, Function, Index, Parameter, Type, TypeKind, UnaryOp};

/// `fn logits(x: f32[batch, 784]) -> f32[batch, 10]`; `_` stands for what cannot be shown.
pub(crate) fn signature(function: &Function) -> String {
    let parameters: Vec<String> = function.parameters.iter().map(parameter).collect();
    let result = function.result.as_ref().map(|result| format!(" -> {}", type_text(result))).unwrap_or_default();
    format!("fn {}({}){result}", function.name.name, parameters.join(", "))
}

fn parameter(parameter: &Parameter) -> String {
    let bounds = parameter.bounds.as_ref().map(|bounds| format!(" in {}", range(bounds))).unwrap_or_default();
    format!("{}: {}{bounds}", parameter.name.name, type_text(&parameter.ty))
}

/// `16..=2048 step 16`
pub(crate) fn range(bounds: &Bounds) -> String {
    let dots = if bounds.inclusive { "..=" } else { ".." };
    let step = bounds.step.as_ref().map(|step| format!(" step {}", shown(step))).unwrap_or_default();
    format!("{}{dots}{}{step}", shown(&bounds.low), shown(&bounds.high))
}

fn type_text(ty: &Type) -> String {
    match &ty.kind {
        TypeKind::Scalar(element) => element.name().into(),
        TypeKind::Tensor(tensor) => {
            let leading = tensor.leading.iter().map(|_| "..".to_string());
            let axes: Vec<String> = leading.chain(tensor.axes.iter().map(shown)).collect();
            format!("{}[{}]", tensor.element.name(), axes.join(", "))
        }
        TypeKind::Tuple(types) => format!("({})", types.iter().map(type_text).collect::<Vec<_>>().join(", ")),
        TypeKind::Poison => "_".into(),
    }
}

fn shown(expr: &Expr) -> String {
    expression(expr).unwrap_or_else(|| "_".into())
}

/// An expression; nothing where a mistake stood, or a choice.
pub(crate) fn expression(expr: &Expr) -> Option<String> {
    Some(match &expr.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Float(value) => format!("{value:?}"),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Text(value) => format!("{value:?}"),
        ExprKind::Name(name) => name.name.clone(),
        ExprKind::Unary(operator, operand) => {
            let sign = match operator {
                UnaryOp::Negate => "-",
                UnaryOp::Not => "!",
            };
            format!("{sign}{}", within(operand, 9)?)
        }
        ExprKind::Binary(operator, left, right) => {
            let power = power(*operator);
            format!("{} {} {}", within(left, power)?, operator.text(), within(right, power + 1)?)
        }
        ExprKind::Call(callee, arguments) => format!("{}({})", expression(callee)?, listed(arguments)?),
        ExprKind::Method(receiver, name, arguments) => {
            format!("{}.{name}({})", within(receiver, 9)?, listed(arguments)?)
        }
        ExprKind::Field(base, name) => format!("{}.{name}", within(base, 9)?),
        ExprKind::Index(base, indices) => {
            let indices: Option<Vec<String>> = indices.iter().map(index).collect();
            format!("{}[{}]", within(base, 9)?, indices?.join(", "))
        }
        ExprKind::Array(parts) => format!("[{}]", all(parts)?),
        ExprKind::Tuple(parts) => format!("({})", all(parts)?),
        ExprKind::Hole => "_".into(),
        ExprKind::If(_) | ExprKind::Poison => return None,
    })
}

fn all(parts: &[Expr]) -> Option<String> {
    parts.iter().map(expression).collect::<Option<Vec<_>>>().map(|parts| parts.join(", "))
}

fn listed(arguments: &[Argument]) -> Option<String> {
    let argument = |argument: &Argument| match &argument.name {
        Some(name) => Some(format!("{name} = {}", expression(&argument.value)?)),
        None => expression(&argument.value),
    };
    arguments.iter().map(argument).collect::<Option<Vec<_>>>().map(|parts| parts.join(", "))
}

/// What stands between brackets, for one axis.
pub(crate) fn index(at: &Index) -> Option<String> {
    match at {
        Index::At(at) => expression(at),
        Index::Slice { start, end, inclusive, .. } => {
            let part = |end: &Option<Expr>| end.as_ref().map_or(Some(String::new()), expression);
            Some(format!("{}{}{}", part(start)?, if *inclusive { "..=" } else { ".." }, part(end)?))
        }
    }
}

fn within(expr: &Expr, least: u8) -> Option<String> {
    let own = match &expr.kind {
        ExprKind::Binary(operator, ..) => power(*operator),
        ExprKind::Unary(..) => 8,
        _ => 9,
    };
    let text = expression(expr)?;
    Some(if own < least { format!("({text})") } else { text })
}

fn power(operator: BinaryOp) -> u8 {
    match operator {
        BinaryOp::Or => 2,
        BinaryOp::And => 3,
        BinaryOp::Add | BinaryOp::Subtract => 4,
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::MatMul => 5,
        _ => 1,
    }
}
