//! Trees as text, every pair of operands in parentheses, so that a test can state the tree that it expects.

use crate::syntax::*;

pub(super) fn expr(value: &Expr) -> String {
    match &value.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Float(value) => format!("{value:?}"),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Text(value) => format!("{value:?}"),
        ExprKind::Name(name) => name.name.clone(),
        ExprKind::Unary(UnaryOp::Negate, operand) => format!("-{}", expr(operand)),
        ExprKind::Unary(UnaryOp::Not, operand) => format!("!{}", expr(operand)),
        ExprKind::Binary(operator, left, right) => format!("({} {} {})", expr(left), operator.text(), expr(right)),
        ExprKind::Call(callee, given) => format!("call {}({})", expr(callee), arguments(given)),
        ExprKind::Method(receiver, name, given) => format!("method {}.{name}({})", expr(receiver), arguments(given)),
        ExprKind::Field(base, name) => format!("{}.{name}", expr(base)),
        ExprKind::Index(base, index) => format!("{}[{}]", expr(base), indices(index)),
        ExprKind::Array(elements) => format!("array[{}]", list(elements, expr)),
        ExprKind::Tuple(elements) => format!("tuple({})", list(elements, expr)),
        ExprKind::Hole => "_".into(),
        ExprKind::If(choice) => if_else(choice),
        ExprKind::Poison => "POISON".into(),
    }
}

pub(super) fn list<T>(parts: &[T], one: fn(&T) -> String) -> String {
    parts.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub(super) fn arguments(given: &[Argument]) -> String {
    list(given, |argument| match &argument.name {
        Some(name) => format!("{name} = {}", expr(&argument.value)),
        None => expr(&argument.value),
    })
}

pub(super) fn indices(given: &[Index]) -> String {
    list(given, |index| match index {
        Index::At(at) => format!("at {}", expr(at)),
        Index::Slice { start, end, inclusive, .. } => {
            let dots = if *inclusive { "..=" } else { ".." };
            format!("{}{dots}{}", optional(start), optional(end))
        }
    })
}

fn optional(value: &Option<Expr>) -> String {
    value.as_ref().map_or_else(String::new, expr)
}

fn if_else(choice: &If) -> String {
    let branches = list(&choice.branches, |(condition, body)| format!("if {} {{ {} }}", expr(condition), block(body)));
    let otherwise = choice.otherwise.as_ref().map_or_else(String::new, |body| format!(" else {{ {} }}", block(body)));
    branches + &otherwise
}

/// Statements with their numbers.
pub(super) fn block(body: &Block) -> String {
    let mut parts: Vec<_> = body.statements.iter().map(statement).collect();
    parts.extend(body.tail.iter().map(|tail| format!("{}: {}", tail.number, expr(&tail.value))));
    parts.join("; ")
}

fn statement(statement: &Statement) -> String {
    let text = match &statement.kind {
        StatementKind::Let(Pattern::Name(name), value) => format!("let {} = {}", binding(name), expr(value)),
        StatementKind::Let(Pattern::Tuple(names, _), value) => {
            format!("let ({}) = {}", list(names, binding), expr(value))
        }
        StatementKind::Assign(assign) => {
            let index = assign.index.as_ref().map_or_else(String::new, |index| format!("[{}]", indices(index)));
            let operator = assign.operator.map_or("", BinaryOp::text);
            format!("{}{index} {operator}= {}", assign.name, expr(&assign.value))
        }
        StatementKind::For(repeat) => format!("for {} {{ {} }}", over(&repeat.over), block(&repeat.body)),
        StatementKind::If(choice) => if_else(choice),
        StatementKind::Expr(value) => expr(value) + ";",
        StatementKind::Poison(names) => format!("POISON({})", list(names, Ident::to_string)),
    };
    format!("{}: {text}", statement.number)
}

fn binding(binding: &Binding) -> String {
    format!("{}{}", if binding.mutable { "mut " } else { "" }, binding.name)
}

fn over(over: &Over) -> String {
    match over {
        Over::Each { item, array } => format!("each {item} in {}", expr(array)),
        Over::Numbered { index, item, array } => format!("numbered {index}, {item} in {}", expr(array)),
        Over::Together { items, arrays } => {
            format!("together {} in {}", list(items, Ident::to_string), list(arrays, expr))
        }
        Over::Range { index, bounds: range } => format!("range {index} in {}", bounds(range)),
        Over::Poison(names) => format!("POISON({})", list(names, Ident::to_string)),
    }
}

pub(super) fn bounds(bounds: &Bounds) -> String {
    let step = bounds.step.as_ref().map_or_else(String::new, |step| format!(" step {}", expr(step)));
    let dots = if bounds.inclusive { "..=" } else { ".." };
    format!("{}{dots}{}{step}", expr(&bounds.low), expr(&bounds.high))
}

pub(super) fn ty(of: &Type) -> String {
    match &of.kind {
        TypeKind::Scalar(element) => element.name().into(),
        TypeKind::Tensor(tensor) => {
            let leading = if tensor.leading.is_some() { ".. " } else { "" };
            format!("{}[{leading}{}]", tensor.element.name(), list(&tensor.axes, expr))
        }
        TypeKind::Tuple(parts) => format!("({})", list(parts, ty)),
        TypeKind::Poison => "POISON".into(),
    }
}

pub(super) fn dimension(dimension: &Dimension) -> String {
    let name = &dimension.name;
    match &dimension.kind {
        DimensionKind::Required => name.to_string(),
        DimensionKind::Default(value) => format!("{name} = {}", expr(value)),
        DimensionKind::Runtime(range) => format!("{name} in {}", bounds(range)),
        DimensionKind::Poison => format!("{name} POISON"),
    }
}

pub(super) fn layer_use(layer: &LayerUse) -> String {
    format!("{}<{}>", layer.name, arguments(&layer.arguments))
}

pub(super) fn members(members: &[Member]) -> String {
    list(members, member)
}

pub(super) fn member(member: &Member) -> String {
    match &member.kind {
        MemberKind::Let(constant) => format!("let {} = {}", constant.name, expr(&constant.value)),
        MemberKind::Layer(SubLayer { name, layer, count: None }) => format!("{name}: {}", layer_use(layer)),
        MemberKind::Layer(SubLayer { name, layer, count: Some(count) }) => {
            format!("{name}: [{}; {}]", layer_use(layer), expr(count))
        }
        MemberKind::Tensor(tensor) => {
            let initialiser =
                tensor.initialiser.as_ref().map_or_else(String::new, |value| format!(" = {}", expr(value)));
            format!("{} {}: {}{initialiser}", tensor.role.word(), tensor.name, ty(&tensor.ty))
        }
        MemberKind::If(choice) => {
            let branches =
                list(&choice.branches, |(condition, inner)| format!("if {} {{ {} }}", expr(condition), members(inner)));
            let otherwise =
                choice.otherwise.as_ref().map_or_else(String::new, |inner| format!(" else {{ {} }}", members(inner)));
            branches + &otherwise
        }
        MemberKind::Function(function) => signature(function),
        MemberKind::Poison(name) => format!("POISON {}", name.as_ref().map_or("?", |name| &name.name)),
    }
}

pub(super) fn signature(function: &Function) -> String {
    let visibility = if function.visibility.is_private() { "" } else { "pub " };
    let parameters = list(&function.parameters, |parameter| {
        let range = parameter.bounds.as_ref().map_or_else(String::new, |range| format!(" in {}", bounds(range)));
        format!("{}: {}{range}", parameter.name, ty(&parameter.ty))
    });
    let result = function.result.as_ref().map_or_else(String::new, |result| format!(" -> {}", ty(result)));
    format!("{visibility}fn {}({parameters}){result}", function.name)
}
