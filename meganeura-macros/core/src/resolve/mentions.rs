//! Which names a piece of text mentions or declares.

use std::collections::{BTreeMap, BTreeSet};

use crate::syntax::{Expr, ExprKind, Index, Member, MemberKind, Type, TypeKind};

/// Names in an expression.
pub(super) fn mentioned<'a>(expr: &'a Expr, names: &mut Vec<&'a str>) {
    match &expr.kind {
        ExprKind::Name(name) => names.push(&name.name),
        ExprKind::Unary(_, operand) => mentioned(operand, names),
        ExprKind::Binary(_, left, right) => {
            mentioned(left, names);
            mentioned(right, names);
        }
        ExprKind::Call(_, arguments) => arguments.iter().for_each(|argument| mentioned(&argument.value, names)),
        ExprKind::Method(receiver, _, arguments) => {
            mentioned(receiver, names);
            arguments.iter().for_each(|argument| mentioned(&argument.value, names));
        }
        ExprKind::Field(base, _) => mentioned(base, names),
        ExprKind::Index(base, indices) => {
            mentioned(base, names);
            for index in indices {
                parts(index).for_each(|part| mentioned(part, names));
            }
        }
        ExprKind::Array(parts) | ExprKind::Tuple(parts) => parts.iter().for_each(|part| mentioned(part, names)),
        ExprKind::If(choice) => {
            for (condition, block) in &choice.branches {
                mentioned(condition, names);
                block.tail.iter().for_each(|tail| mentioned(&tail.value, names));
            }
            let tail = choice.otherwise.as_ref().and_then(|block| block.tail.as_ref());
            tail.iter().for_each(|tail| mentioned(&tail.value, names));
        }
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Text(_)
        | ExprKind::Hole
        | ExprKind::Poison => {}
    }
}

pub(super) fn parts(index: &Index) -> impl Iterator<Item = &Expr> {
    let (at, start, end) = match index {
        Index::At(at) => (Some(at), None, None),
        Index::Slice { start, end, .. } => (None, start.as_ref(), end.as_ref()),
    };
    [at, start, end].into_iter().flatten()
}

/// Names in the sizes of a type.
pub(super) fn mentioned_in_type<'a>(ty: &'a Type, names: &mut Vec<&'a str>) {
    match &ty.kind {
        TypeKind::Tensor(tensor) => tensor.axes.iter().for_each(|axis| mentioned(axis, names)),
        TypeKind::Tuple(parts) => parts.iter().for_each(|part| mentioned_in_type(part, names)),
        TypeKind::Scalar(_) | TypeKind::Poison => {}
    }
}

/// The `let` members, those in branches too.
pub(super) fn constants<'a>(members: &'a [Member], found: &mut BTreeMap<&'a str, &'a Expr>) {
    for member in members {
        match &member.kind {
            MemberKind::Let(constant) => {
                found.insert(&constant.name.name, &constant.value);
            }
            MemberKind::If(choice) => {
                choice.branches.iter().for_each(|(_, members)| constants(members, found));
                choice.otherwise.iter().for_each(|members| constants(members, found));
            }
            _ => {}
        }
    }
}

/// The names of all members, those in branches too.
pub(super) fn member_names(members: &[Member]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for member in members {
        names.extend(member.name().map(|name| name.name.as_str()));
        if let MemberKind::If(choice) = &member.kind {
            choice.branches.iter().for_each(|(_, members)| names.extend(member_names(members)));
            choice.otherwise.iter().for_each(|members| names.extend(member_names(members)));
        }
    }
    names
}

/// The members of that name; branches may have one each.
pub(super) fn find_members<'a>(members: &'a [Member], name: &str, found: &mut Vec<&'a Member>) {
    for member in members {
        if member.name().is_some_and(|own| own.name == name) {
            found.push(member);
        }
        if let MemberKind::If(choice) = &member.kind {
            choice.branches.iter().for_each(|(_, members)| find_members(members, name, found));
            choice.otherwise.iter().for_each(|members| find_members(members, name, found));
        }
    }
}
