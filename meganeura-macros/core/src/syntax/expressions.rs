//! Expressions: a Pratt parser.
//!
//! From loose to tight, as in Rust and Python: comparisons, `|`, `&`, `+ -`, `* / @`,
//! signs, then calls, indices and members. A mistake ends the expression; the statement or member around it recovers.
//! The height of every tree is limited, so that whoever walks one may recurse.

use super::ast::{Argument, BinaryOp, Block, Expr, ExprKind, If, Index, UnaryOp};
use super::literals;
use super::parser::{Angles, Parsed, Parser, Token};
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Group, Span};

/// Operations on top of each other in one expression, blocks inside included.
const MAX_HEIGHT: u32 = 256;

impl BinaryOp {
    fn from_text(text: &str) -> Option<Self> {
        Some(match text {
            "|" => Self::Or,
            "&" => Self::And,
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterEqual,
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "@" => Self::MatMul,
            _ => return None,
        })
    }

    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            Self::Or => "|",
            Self::And => "&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::MatMul => "@",
        }
    }

    /// Whether it compares.
    pub fn is_comparison(self) -> bool {
        self.power() == 1
    }

    fn power(self) -> u8 {
        match self {
            Self::Equal | Self::NotEqual | Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual => 1,
            Self::Or => 2,
            Self::And => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::MatMul => 5,
        }
    }
}

impl Expr {
    pub(super) fn new(span: Span, kind: ExprKind) -> Self {
        let below = match &kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Text(_)
            | ExprKind::Name(_)
            | ExprKind::Hole
            | ExprKind::Poison => 0,
            ExprKind::Unary(_, operand) => operand.height,
            ExprKind::Binary(_, left, right) => left.height.max(right.height),
            ExprKind::Call(callee, arguments) => callee.height.max(highest_argument(arguments)),
            ExprKind::Method(receiver, _, arguments) => receiver.height.max(highest_argument(arguments)),
            ExprKind::Field(base, _) => base.height,
            ExprKind::Index(base, indices) => base.height.max(highest_index(indices)),
            ExprKind::Array(elements) | ExprKind::Tuple(elements) => {
                elements.iter().map(|element| element.height).max().unwrap_or(0)
            }
            ExprKind::If(choice) => choice.height(),
        };
        Self { span, kind, height: below + 1 }
    }

    pub(super) fn poison(span: Span) -> Self {
        Self::new(span, ExprKind::Poison)
    }

    /// Whether this very expression could not be read.
    pub fn is_poison(&self) -> bool {
        matches!(self.kind, ExprKind::Poison)
    }
}

pub(super) fn highest_index(indices: &[Index]) -> u32 {
    let heights = indices.iter().flat_map(|index| match index {
        Index::At(at) => [at.height, 0],
        Index::Slice { start, end, .. } => [start, end].map(|end| end.as_ref().map_or(0, |end| end.height)),
    });
    heights.max().unwrap_or(0)
}

fn highest_argument(arguments: &[Argument]) -> u32 {
    arguments.iter().map(|argument| argument.value.height).max().unwrap_or(0)
}

impl If {
    pub(super) fn height(&self) -> u32 {
        let branches = self.branches.iter().map(|(condition, block)| condition.height.max(block.height));
        branches.chain(self.otherwise.iter().map(|block| block.height)).max().unwrap_or(0)
    }
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.binary(0)
    }

    /// A node on top of others that is not too high.
    pub(super) fn node(&self, span: Span, kind: ExprKind) -> Parsed<Expr> {
        let node = Expr::new(span, kind);
        if node.height > MAX_HEIGHT { Err(Error::new(span, diag::expression_too_deep(MAX_HEIGHT))) } else { Ok(node) }
    }

    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Some(operator) = self.binary_operator()?.filter(|operator| operator.power() >= least) {
            let span = self.span();
            self.at += operator.text().len();
            let right = self.binary(operator.power() + 1)?;
            left = self.node(span, ExprKind::Binary(operator, Box::new(left), Box::new(right)))?;
            if operator.is_comparison()
                && let Some(second) = self.binary_operator()?.filter(|second| second.is_comparison())
            {
                return Err(Error::new(self.span(), diag::chained_comparison(operator.text(), second.text())));
            }
        }
        Ok(left)
    }

    /// The operator that follows an operand, if one does; what other languages write there is a mistake.
    fn binary_operator(&self) -> Parsed<Option<BinaryOp>> {
        let fail = |message: String| Err(Error::new(self.span(), message));
        if let Some(word) = self.peek_ident(0) {
            return match word.name.as_str() {
                "and" | "or" if !word.raw => fail(diag::word_operator(&word.name)),
                "if" if !word.raw && self.is_python_if() => fail(diag::python_if()),
                _ => Ok(None),
            };
        }
        let Some(text) = self.operator() else { return Ok(None) };
        match text {
            "**" => return fail(diag::power()),
            "&&" | "||" => return fail(diag::doubled_operator(text)),
            "%" | "^" | "<<" => return fail(diag::no_operator(text)),
            ">>" if self.angles != Angles::Here => return fail(diag::no_operator(text)),
            _ => {}
        }
        match (BinaryOp::from_text(text), self.angles) {
            (Some(_), Angles::Here) if text.starts_with('>') => Ok(None),
            (Some(operator), Angles::Here | Angles::Around) if operator.is_comparison() => {
                fail(diag::layer_as_argument())
            }
            (operator, _) => Ok(operator),
        }
    }

    /// `a if c else b`: no braces up to the end of the statement, which a forgotten `;` before an `if` would show.
    fn is_python_if(&self) -> bool {
        for token in self.tokens.iter().skip(self.at + 1) {
            match token {
                Token::Group(group) if group.delimiter() == Delimiter::Brace => return false,
                Token::Punct(';', ..) => return true,
                Token::Ident(word) if word.is("else") => return true,
                _ => {}
            }
        }
        true
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let mut operators = vec![];
        loop {
            let span = self.span();
            if self.is_word("not") && self.begins_operand(1) {
                return Err(Error::new(span, diag::word_operator("not")));
            }
            // Not `take`: `-=` and `!=` cannot begin a value, but `--x` and `!-x` can.
            match self.operator() {
                Some("-") => operators.push((UnaryOp::Negate, span)),
                Some("!") => operators.push((UnaryOp::Not, span)),
                Some("~") => return Err(Error::new(span, diag::tilde())),
                _ => break,
            }
            self.at += 1;
        }
        let mut operand = self.postfix()?;
        while let Some((operator, span)) = operators.pop() {
            operand = self.node(span, ExprKind::Unary(operator, Box::new(operand)))?;
        }
        Ok(operand)
    }

    /// Whether a name or literal stands there: two operands in a row.
    fn begins_operand(&self, ahead: usize) -> bool {
        match self.peek(ahead) {
            Some(Token::Ident(word)) => !["and", "or", "if", "else", "in"].iter().any(|other| word.is(other)),
            Some(Token::Literal(_)) => true,
            _ => false,
        }
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let mut base = self.primary()?;
        if matches!(base.kind, ExprKind::If(_)) {
            return Ok(base);
        }
        loop {
            if let Some(group) = self.take_group(Delimiter::Parenthesis) {
                if !matches!(base.kind, ExprKind::Name(_) | ExprKind::Index(..) | ExprKind::Field(..)) {
                    return Err(Error::new(group.span_open(), diag::not_callable()));
                }
                let arguments = self.arguments(&group)?;
                base = self.node(base.span, ExprKind::Call(Box::new(base), arguments))?;
            } else if let Some(group) = self.take_group(Delimiter::Bracket) {
                let indices = self.indices(&group)?;
                base = self.node(group.span(), ExprKind::Index(Box::new(base), indices))?;
            } else if self.take(".").is_some() {
                if let Some(Token::Literal(literal)) = self.peek(0) {
                    return Err(Error::new(literal.span(), diag::tuple_field()));
                }
                let name = self.name("the name of a member or function")?;
                base = match self.take_group(Delimiter::Parenthesis) {
                    Some(group) => {
                        let arguments = self.arguments(&group)?;
                        self.node(name.span, ExprKind::Method(Box::new(base), name, arguments))?
                    }
                    None => self.node(name.span, ExprKind::Field(Box::new(base), name))?,
                };
            } else {
                return Ok(base);
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        match self.peek(0).cloned() {
            Some(Token::Literal(literal)) => {
                let (negative, kind) = literals::value(&literal)?;
                self.at += 1;
                let value = Expr::new(span, kind);
                if !negative {
                    return Ok(value);
                }
                self.node(span, ExprKind::Unary(UnaryOp::Negate, Box::new(value)))
            }
            Some(Token::Ident(word)) if word.is("true") || word.is("false") => {
                self.at += 1;
                Ok(Expr::new(span, ExprKind::Bool(word.is("true"))))
            }
            Some(Token::Ident(word)) if word.is("if") => {
                let choice = self.choice()?;
                self.value_of(choice)
            }
            Some(Token::Ident(word)) if word.is("_") => Err(Error::new(span, diag::hole())),
            Some(Token::Ident(_)) => self.used_name(),
            Some(Token::Group(group)) => match group.delimiter() {
                Delimiter::Parenthesis => self.parentheses(&group),
                Delimiter::Bracket => self.array(&group),
                Delimiter::None => {
                    self.at += 1;
                    let mut inside = self.inside(&group)?;
                    let value = inside.expression()?;
                    inside.expect_end()?;
                    Ok(value)
                }
                Delimiter::Brace => Err(self.unexpected(diag::VALUE)),
            },
            Some(Token::Punct(..)) => Err(match (self.operator(), self.peek(1)) {
                (Some("."), Some(Token::Literal(digits))) => Error::new(span, diag::leading_point(&digits.to_string())),
                (Some(".." | "..="), _) => Error::new(span, diag::range_outside()),
                _ => self.unexpected(diag::VALUE),
            }),
            None => Err(self.unexpected(diag::VALUE)),
        }
    }

    fn used_name(&mut self) -> Parsed<Expr> {
        let name = self.name(diag::VALUE)?;
        if self.is("::") && self.peek_ident(2).is_some() {
            return Err(Error::new(self.span(), diag::path_in_place_of_name()));
        }
        let looks_like_layer =
            name.name.starts_with(char::is_uppercase) && name.name.contains(char::is_lowercase) && self.is("<");
        if looks_like_layer && self.angles == Angles::No {
            return Err(Error::new(name.span, diag::inline_layer(&name.name)));
        }
        Ok(Expr::new(name.span, ExprKind::Name(name)))
    }

    /// `(a)`, `(a, b)`
    fn parentheses(&mut self, group: &Group) -> Parsed<Expr> {
        self.at += 1;
        let mut inside = self.inside(group)?;
        let first = inside.expression()?;
        if inside.is_end() {
            return Ok(first);
        }
        inside.comma_or_end()?;
        let mut elements = vec![first];
        while !inside.is_end() {
            elements.push(inside.expression()?);
            inside.comma_or_end()?;
        }
        self.node(group.span(), ExprKind::Tuple(elements))
    }

    /// `[a, b]`
    fn array(&mut self, group: &Group) -> Parsed<Expr> {
        self.at += 1;
        let mut inside = self.inside(group)?;
        let mut elements = vec![];
        while !inside.is_end() {
            let alone = inside.peek(1).is_none() || inside.operator_at(1) == Some(",");
            if alone && let Some(span) = inside.take_word("_") {
                elements.push(Expr::new(span, ExprKind::Hole));
            } else {
                elements.push(inside.expression()?);
            }
            inside.comma_or_end()?;
        }
        self.node(group.span(), ExprKind::Array(elements))
    }

    /// Between the parentheses of a call.
    fn arguments(&mut self, group: &Group) -> Parsed<Vec<Argument>> {
        let mut inside = self.inside(group)?;
        let mut arguments: Vec<Argument> = vec![];
        while !inside.is_end() {
            let argument = inside.argument(&arguments)?;
            arguments.push(argument);
            inside.comma_or_end()?;
        }
        Ok(arguments)
    }

    /// `value` or `name = value`, of a call or of a layer.
    pub(super) fn argument(&mut self, before: &[Argument]) -> Parsed<Argument> {
        let span = self.span();
        let name = if self.peek_ident(0).is_some() && self.operator_at(1) == Some("=") {
            let name = self.name("the name of an argument")?;
            self.at += 1;
            Some(name)
        } else {
            None
        };
        let value = self.expression()?;
        if name.is_none() && before.last().is_some_and(|last| last.name.is_some()) {
            return Err(Error::new(span, diag::positional_after_named()));
        }
        Ok(Argument { name, value })
    }

    /// Between the brackets of an index.
    fn indices(&mut self, group: &Group) -> Parsed<Vec<Index>> {
        let mut inside = self.inside(group)?;
        if inside.is_end() {
            return Err(Error::new(group.span_close(), diag::empty_index()));
        }
        let mut indices = vec![];
        while !inside.is_end() {
            indices.push(inside.index()?);
            inside.comma_or_end()?;
        }
        Ok(indices)
    }

    fn index(&mut self) -> Parsed<Index> {
        self.refuse_python_slice()?;
        let start = if self.is("..") || self.is("..=") { None } else { Some(self.expression()?) };
        self.refuse_python_slice()?;
        let span = self.span();
        let inclusive = self.is("..=");
        if self.take("..").is_none() && self.take("..=").is_none() {
            return match start {
                Some(at) => Ok(Index::At(at)),
                None => Err(self.unexpected("an index")),
            };
        }
        let open = self.is_end() || self.is(",");
        let end = if open && !inclusive { None } else { Some(self.expression()?) };
        self.refuse_python_slice()?;
        Ok(Index::Slice { start, end, inclusive, span })
    }

    fn refuse_python_slice(&self) -> Parsed<()> {
        let message = match self.operator() {
            Some("::") => diag::slice_step(),
            Some(":") => diag::python_slice(),
            Some("...") => diag::ellipsis(),
            _ => return Ok(()),
        };
        Err(Error::new(self.span(), message))
    }

    /// `if` where a value is needed.
    pub(super) fn value_of(&self, choice: If) -> Parsed<Expr> {
        if choice.otherwise.is_none() {
            return Err(Error::new(choice.span, diag::missing_else()));
        }
        self.node(choice.span, ExprKind::If(Box::new(choice)))
    }

    /// `if c { .. } else if d { .. } else { .. }`; begins at `if`.
    pub(super) fn choice(&mut self) -> Parsed<If> {
        let span = self.span();
        let mut branches: Vec<(Expr, Block)> = vec![];
        loop {
            self.at += 1;
            let (condition, group) = self.condition()?;
            branches.push((condition, self.block(&group)));
            if self.is_word("elif") {
                return Err(Error::new(self.span(), diag::elif_habit()));
            }
            if self.take_word("else").is_none() {
                return Ok(If { span, branches, otherwise: None });
            }
            if self.is_word("if") {
                continue;
            }
            let Some(group) = self.take_group(Delimiter::Brace) else {
                return Err(self.unexpected("`{` after `else`"));
            };
            let otherwise = Some(self.block(&group));
            return Ok(If { span, branches, otherwise });
        }
    }

    /// A condition and the braces behind it. A mistake in the condition leaves the braces to be read.
    pub(super) fn condition(&mut self) -> Parsed<(Expr, Group)> {
        let span = self.span();
        let mut condition = self.expression();
        if condition.is_ok() && self.group_at(0, Delimiter::Brace).is_none() {
            condition = Err(if self.is("=") {
                Error::new(self.span(), diag::assignment_in_expression())
            } else {
                self.after_expression("`{`")
            });
        }
        let error = match condition {
            Ok(condition) => match self.take_group(Delimiter::Brace) {
                Some(group) => return Ok((condition, group)),
                None => self.unexpected("`{`"),
            },
            Err(error) => error,
        };
        match self.skip_to_braces() {
            Some(group) => {
                self.push(error);
                Ok((Expr::poison(span), group))
            }
            None => Err(error),
        }
    }

    /// The next braces of this statement or member.
    pub(super) fn skip_to_braces(&mut self) -> Option<Group> {
        let rest = self.tokens.iter().enumerate().skip(self.at);
        let braces =
            rest.take_while(|(_, token)| !matches!(token, Token::Punct(';', ..))).find_map(|(at, token)| match token {
                Token::Group(group) if group.delimiter() == Delimiter::Brace => Some((at, group.clone())),
                _ => None,
            });
        let (at, group) = braces?;
        self.at = at + 1;
        Some(group)
    }

    /// What follows an expression is none of `expected`.
    pub(super) fn after_expression(&self, expected: &str) -> Error {
        match self.operator() {
            Some(".." | "..=") => Error::new(self.span(), diag::range_outside()),
            Some(">" | ">=" | "<" | "<=") if self.angles == Angles::Here => {
                Error::new(self.span(), diag::layer_as_argument())
            }
            _ => self.unexpected(expected),
        }
    }
}
