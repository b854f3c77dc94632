//! Names as ordinary Rust bindings in a closure that nothing runs, so that rustc warns of those that nobody uses, with its
//! own lint at the user's token, and an editor knows them.
//!
//! Functions keep their blocks, so shadowing means what it means in Rust. What is public in a layer may be used elsewhere.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;

use crate::syntax::{
    Argument, Block, Definition, Expr, ExprKind, Function, Ident, If, Index, Item, ItemBody, ItemKind, Member,
    MemberKind, Over, Source, Statement, StatementKind, Type, TypeKind,
};

/// The closures of all items of an invocation.
pub fn bindings(source: &Source) -> TokenStream {
    let mut fields = BTreeSet::new();
    for item in &source.items {
        if let ItemBody::Definition(definition) = &item.body {
            definition.members.iter().for_each(|member| fields_of_member(member, &mut fields));
        }
    }
    let items = source.items.iter().filter_map(|item| match &item.body {
        ItemBody::Definition(definition) if !item.broken => Some(of_item(item, definition, &fields)),
        _ => None,
    });
    let items: Vec<TokenStream> = items.collect();
    if items.is_empty() {
        return TokenStream::new();
    }
    quote! {
        const _: () = {
            #[allow(dead_code, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
            fn __names() { #(let _ = || { #items };)* }
        };
    }
}

fn of_item(item: &Item, definition: &Definition, fields: &BTreeSet<String>) -> TokenStream {
    let mut names = Names { scope: vec![], locals: 0, tokens: TokenStream::new() };
    for dimension in &definition.dimensions.list {
        names.known(&dimension.name);
    }
    // What has no function holds its members for others.
    let is_public = item.kind == ItemKind::Layer && !item.visibility.is_private();
    let may_be_used_elsewhere = is_public || !has_function(&definition.members);
    names.declare(&definition.members, item.kind, may_be_used_elsewhere, fields);
    names.locals = names.scope.len();
    names.members(&definition.members);
    names.tokens
}

fn has_function(members: &[Member]) -> bool {
    members.iter().any(|member| match &member.kind {
        MemberKind::Function(_) => true,
        MemberKind::If(choice) => {
            let branches = choice.branches.iter().map(|(_, members)| members).chain(&choice.otherwise);
            branches.into_iter().any(|members| has_function(members))
        }
        _ => false,
    })
}

struct Names<'a> {
    scope: Vec<&'a Ident>,
    /// How many of them are dimensions and members.
    locals: usize,
    tokens: TokenStream,
}

impl<'a> Names<'a> {
    /// A name that is there and that no warning is about.
    fn known(&mut self, name: &'a Ident) {
        self.bind(name);
        self.mention(name);
    }

    fn bind(&mut self, name: &'a Ident) {
        let token = name.to_token();
        self.tokens.extend(quote!(let #token = ();));
        self.scope.push(name);
    }

    fn mention(&mut self, name: &Ident) {
        // A `macro_rules!` may have written the one and passed on the other.
        if let Some(declared) = self.scope.iter().rev().find(|declared| declared.name == name.name) {
            let mut token = name.to_token();
            token.set_span(name.span.resolved_at(declared.span));
            self.tokens.extend(quote!(let _ = &#token;));
        }
    }

    fn declare(&mut self, members: &'a [Member], kind: ItemKind, elsewhere: bool, fields: &BTreeSet<String>) {
        for member in members {
            if let MemberKind::If(choice) = &member.kind {
                let branches = choice.branches.iter().map(|(_, members)| members).chain(&choice.otherwise);
                branches.for_each(|members| self.declare(members, kind, elsewhere, fields));
            }
            let Some(name) = member.name() else { continue };
            if self.scope.iter().any(|declared| declared.name == name.name) {
                continue;
            }
            let is_used = match &member.kind {
                MemberKind::Function(function) => kind == ItemKind::Layer || !function.visibility.is_private(),
                MemberKind::Poison(_) => true,
                MemberKind::Let(_) => false,
                _ => elsewhere || fields.contains(&name.name),
            };
            if is_used { self.known(name) } else { self.bind(name) }
        }
    }

    fn members(&mut self, members: &'a [Member]) {
        for member in members {
            match &member.kind {
                MemberKind::Let(constant) => self.expression(&constant.value),
                MemberKind::Layer(layer) => {
                    self.arguments(&layer.layer.arguments);
                    layer.count.iter().for_each(|count| self.expression(count));
                }
                MemberKind::Tensor(tensor) => {
                    self.ty(&tensor.ty);
                    tensor.initialiser.iter().for_each(|value| self.expression(value));
                }
                MemberKind::If(choice) => {
                    for (condition, members) in &choice.branches {
                        self.expression(condition);
                        self.members(members);
                    }
                    choice.otherwise.iter().for_each(|members| self.members(members));
                }
                MemberKind::Function(function) => self.function(function),
                MemberKind::Poison(_) => {}
            }
        }
    }

    /// What `run` declares ends with it.
    fn inside(&mut self, run: impl FnOnce(&mut Self)) {
        let (outside, around) = (self.scope.len(), std::mem::take(&mut self.tokens));
        run(self);
        let inner = std::mem::replace(&mut self.tokens, around);
        self.tokens.extend(quote!({ #inner }));
        self.scope.truncate(outside);
    }

    fn function(&mut self, function: &'a Function) {
        self.inside(|names| {
            let types = function.parameters.iter().map(|parameter| &parameter.ty).chain(&function.result);
            types.for_each(|ty| names.ty(ty));
            for parameter in &function.parameters {
                names.bind(&parameter.name);
                if let Some(bounds) = &parameter.bounds {
                    names.expression(&bounds.low);
                    names.expression(&bounds.high);
                }
            }
            // A number that stands in a type is used by it.
            let types = function.parameters.iter().map(|parameter| &parameter.ty).chain(&function.result);
            types.for_each(|ty| names.ty(ty));
            names.statements(&function.body);
        });
    }

    fn ty(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Tensor(tensor) => tensor.axes.iter().for_each(|axis| self.mentions(axis)),
            TypeKind::Tuple(parts) => parts.iter().for_each(|part| self.ty(part)),
            TypeKind::Scalar(_) | TypeKind::Poison => {}
        }
    }

    fn block(&mut self, block: &'a Block) {
        self.inside(|names| names.statements(block));
    }

    fn statements(&mut self, block: &'a Block) {
        block.statements.iter().for_each(|statement| self.statement(statement));
        block.tail.iter().for_each(|tail| self.expression(&tail.value));
    }

    fn statement(&mut self, statement: &'a Statement) {
        match &statement.kind {
            StatementKind::Let(pattern, value) => {
                self.expression(value);
                pattern.bindings().iter().for_each(|binding| self.bind(&binding.name));
            }
            StatementKind::Assign(assign) => {
                for part in assign.index.iter().flatten().flat_map(parts) {
                    self.expression(part);
                }
                self.expression(&assign.value);
                // A member may be read by the next call; a local that is only assigned has no reader.
                let first_local = self.locals;
                if !self.scope[first_local..].iter().any(|local| local.name == assign.name.name) {
                    self.mention(&assign.name);
                }
            }
            StatementKind::For(repeat) => {
                let names: Vec<&'a Ident> = match &repeat.over {
                    Over::Each { item, array } => {
                        self.expression(array);
                        vec![item]
                    }
                    Over::Numbered { index, item, array } => {
                        self.expression(array);
                        vec![index, item]
                    }
                    Over::Together { items, arrays } => {
                        arrays.iter().for_each(|array| self.expression(array));
                        items.iter().collect()
                    }
                    Over::Range { index, bounds } => {
                        self.expression(&bounds.low);
                        self.expression(&bounds.high);
                        vec![index]
                    }
                    Over::Poison(names) => names.iter().collect(),
                };
                self.inside(|inner| {
                    names.into_iter().for_each(|name| inner.bind(name));
                    inner.statements(&repeat.body);
                });
            }
            StatementKind::If(choice) => self.choice(choice),
            StatementKind::Expr(value) => self.expression(value),
            StatementKind::Poison(names) => names.iter().for_each(|name| self.known(name)),
        }
    }

    fn choice(&mut self, choice: &'a If) {
        for (condition, block) in &choice.branches {
            self.expression(condition);
            self.block(block);
        }
        choice.otherwise.iter().for_each(|block| self.block(block));
    }

    fn arguments(&mut self, arguments: &'a [Argument]) {
        arguments.iter().for_each(|argument| self.expression(&argument.value));
    }

    fn expression(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::If(choice) => self.choice(choice),
            ExprKind::Name(name) => self.mention(name),
            _ => children(expr, &mut |child| self.expression(child), &mut |_| {}),
        }
        if let ExprKind::Method(_, name, _) = &expr.kind {
            self.mention(name);
        }
    }

    /// The names of an expression without blocks.
    fn mentions(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name) => self.mention(name),
            _ => children(expr, &mut |child| self.mentions(child), &mut |_| {}),
        }
    }
}

fn parts(index: &Index) -> impl Iterator<Item = &Expr> {
    let (at, start, end) = match index {
        Index::At(at) => (Some(at), None, None),
        Index::Slice { start, end, .. } => (None, start.as_ref(), end.as_ref()),
    };
    [at, start, end].into_iter().flatten()
}

/// The expressions right inside of one, and the blocks.
fn children<'a>(expr: &'a Expr, each: &mut dyn FnMut(&'a Expr), block: &mut dyn FnMut(&'a Block)) {
    match &expr.kind {
        ExprKind::Unary(_, operand) => each(operand),
        ExprKind::Binary(_, left, right) => {
            each(left);
            each(right);
        }
        ExprKind::Call(callee, arguments) => {
            each(callee);
            arguments.iter().for_each(|argument| each(&argument.value));
        }
        ExprKind::Method(receiver, _, arguments) => {
            each(receiver);
            arguments.iter().for_each(|argument| each(&argument.value));
        }
        ExprKind::Field(base, _) => each(base),
        ExprKind::Index(base, indices) => {
            each(base);
            indices.iter().flat_map(parts).for_each(each);
        }
        ExprKind::Array(elements) | ExprKind::Tuple(elements) => elements.iter().for_each(each),
        ExprKind::If(choice) => {
            for (condition, inner) in &choice.branches {
                each(condition);
                block(inner);
            }
            choice.otherwise.iter().for_each(block);
        }
        _ => {}
    }
}

/// The names behind a point anywhere in a member: what another item's function may reach.
fn fields_of_member(member: &Member, fields: &mut BTreeSet<String>) {
    match &member.kind {
        MemberKind::Function(function) => fields_of_block(&function.body, fields),
        MemberKind::If(choice) => {
            let branches = choice.branches.iter().map(|(_, members)| members).chain(&choice.otherwise);
            branches.flatten().for_each(|member| fields_of_member(member, fields));
        }
        _ => {}
    }
}

fn fields_of_block(block: &Block, fields: &mut BTreeSet<String>) {
    for statement in &block.statements {
        match &statement.kind {
            StatementKind::Let(_, value) | StatementKind::Expr(value) => fields_of(value, fields),
            StatementKind::Assign(assign) => {
                assign.index.iter().flatten().flat_map(parts).for_each(|part| fields_of(part, fields));
                fields_of(&assign.value, fields);
            }
            StatementKind::For(repeat) => {
                match &repeat.over {
                    Over::Each { array, .. } | Over::Numbered { array, .. } => fields_of(array, fields),
                    Over::Together { arrays, .. } => arrays.iter().for_each(|array| fields_of(array, fields)),
                    Over::Range { .. } | Over::Poison(_) => {}
                }
                fields_of_block(&repeat.body, fields);
            }
            StatementKind::If(choice) => {
                choice.branches.iter().for_each(|(_, block)| fields_of_block(block, fields));
                choice.otherwise.iter().for_each(|block| fields_of_block(block, fields));
            }
            StatementKind::Poison(_) => {}
        }
    }
    block.tail.iter().for_each(|tail| fields_of(&tail.value, fields));
}

fn fields_of(expr: &Expr, fields: &mut BTreeSet<String>) {
    if let ExprKind::Field(_, name) | ExprKind::Method(_, name, _) = &expr.kind {
        fields.insert(name.name.clone());
    }
    let (mut inner, mut blocks) = (vec![], vec![]);
    children(expr, &mut |child| inner.push(child), &mut |block| blocks.push(block));
    inner.into_iter().for_each(|child| fields_of(child, fields));
    blocks.into_iter().for_each(|block| fields_of_block(block, fields));
}
