//! Members of layers and models.
//!
//! A mistake ends its member, which stays as poison under its name; the parser goes on at the next member, which it
//! recognises by a separator outside `<` and `>` or by how members begin.

use super::ast::{
    Attributes, Constant, Definition, Element, Function, LayerUse, Member, MemberIf, MemberKind, SubLayer,
    TensorMember, TensorRole, TypeKind, Visibility,
};
use super::attributes::{Place, Written};
use super::name::Ident;
use super::parser::{Parsed, Parser};
use super::tokens::Token;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Group};

/// What is known of a member while it is read.
pub(super) struct Attempt {
    name: Option<Ident>,
    /// Where its first token is that is no attribute, `pub` or keyword.
    body: usize,
    /// Whether it ended with braces, so that no separator is needed.
    pub(super) closed: bool,
}

const MEMBER_KEYWORDS: [&str; 6] = ["let", "if", "fn", "param", "buffer", "state"];

impl TensorRole {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            Self::Param => "param",
            Self::Buffer => "buffer",
            Self::State => "state",
        }
    }

    fn place(self) -> Place {
        match self {
            Self::Param => Place::Param,
            Self::Buffer => Place::Buffer,
            Self::State => Place::State,
        }
    }
}

impl Member {
    /// The name that it brings into scope; an `if` brings those of its members.
    pub fn name(&self) -> Option<&Ident> {
        match &self.kind {
            MemberKind::Let(constant) => Some(&constant.name),
            MemberKind::Layer(layer) => Some(&layer.name),
            MemberKind::Tensor(tensor) => Some(&tensor.name),
            MemberKind::Function(function) => Some(&function.name),
            MemberKind::If(_) => None,
            MemberKind::Poison(name) => name.as_ref(),
        }
    }
}

impl Parser<'_> {
    pub(super) fn members(&mut self) -> Vec<Member> {
        let mut members = vec![];
        while !self.is_end() {
            if self.take(",").is_some() || self.take(";").is_some() {
                continue;
            }
            let written = self.written_attributes();
            if self.is_end() {
                let error = self.unexpected(diag::MEMBER);
                self.push(error);
                break;
            }
            members.push(self.member(written));
        }
        members
    }

    fn member(&mut self, written: Vec<Written>) -> Member {
        *self.statements = 0;
        let mut attempt = Attempt { name: None, body: self.at, closed: false };
        let mut written = Some(written);
        match self.member_kind(&mut attempt, &mut written) {
            Ok((attributes, kind)) => {
                let separated = self.is_end() || self.take(",").is_some() || self.take(";").is_some();
                if attempt.closed || separated {
                    return Member { attributes, kind };
                }
                let error = self.after_member(attempt.name.as_ref());
                self.push(error);
                if self.begins_member() {
                    return Member { attributes, kind };
                }
                // What follows may be a part of it.
                self.skip_member(&attempt);
                Member { attributes, kind: MemberKind::Poison(attempt.name) }
            }
            Err(error) => {
                self.push(error);
                let attributes = self.attributes(written.unwrap_or_default(), Place::Unknown);
                self.skip_member(&attempt);
                Member { attributes, kind: MemberKind::Poison(attempt.name) }
            }
        }
    }

    fn after_member(&self, name: Option<&Ident>) -> Error {
        let separator = self.after_expression("");
        let plain = self.unexpected("");
        if separator.message != plain.message {
            return separator;
        }
        Error::new(self.span(), diag::after_member(name.map(|name| name.name.as_str()), &self.found()))
    }

    fn member_kind(
        &mut self,
        attempt: &mut Attempt,
        written: &mut Option<Vec<Written>>,
    ) -> Parsed<(Attributes, MemberKind)> {
        let visibility = if self.is_colon_at(1) { Visibility::default() } else { self.visibility() };
        attempt.body = self.at;
        let Some(word) = self.peek_ident(0).cloned() else { return Err(self.unexpected(diag::MEMBER)) };
        let keyword = if self.is_colon_at(1) || word.raw { "" } else { word.name.as_str() };
        let public = !visibility.is_private();
        let place = match keyword {
            "let" => Place::Constant,
            "if" => Place::Condition,
            "fn" => Place::Function,
            "param" => TensorRole::Param.place(),
            "buffer" => TensorRole::Buffer.place(),
            "state" => TensorRole::State.place(),
            _ if self.lacks_fn() => {
                self.errors.push(word.span, diag::missing_fn(&word.name));
                Place::Function
            }
            _ => Place::SubLayer,
        };
        if MEMBER_KEYWORDS.contains(&keyword) && place != Place::Condition {
            self.at += 1;
            attempt.body = self.at;
        }
        // The name first: what follows may fail, and attributes are then those of something unknown.
        let kind = match place {
            Place::Constant => self.constant(attempt).map(MemberKind::Let),
            Place::Condition => self.member_if(attempt).map(MemberKind::If),
            Place::Function => self.function(attempt, visibility).map(MemberKind::Function),
            Place::Param => self.tensor_member(attempt, TensorRole::Param).map(MemberKind::Tensor),
            Place::Buffer => self.tensor_member(attempt, TensorRole::Buffer).map(MemberKind::Tensor),
            Place::State => self.tensor_member(attempt, TensorRole::State).map(MemberKind::Tensor),
            _ => self.sub_layer(attempt).map(MemberKind::Layer),
        }?;
        if public && place != Place::Function {
            self.errors.push(word.span, diag::public_member(&word.name));
        }
        let attributes = self.attributes(written.take().unwrap_or_default(), place);
        Ok((attributes, kind))
    }

    /// `name(..) ->` or `name(..) {`
    fn lacks_fn(&self) -> bool {
        let call = self.peek_ident(0).is_some() && self.group_at(1, Delimiter::Parenthesis).is_some();
        call && (self.operator_at(2) == Some("->") || self.group_at(2, Delimiter::Brace).is_some())
    }

    /// A `:` that is no `::`.
    fn is_colon_at(&self, ahead: usize) -> bool {
        self.operator_at(ahead) == Some(":")
    }

    pub(super) fn member_name(&mut self, attempt: &mut Attempt, what: &str) -> Parsed<Ident> {
        let name = match self.peek_ident(0) {
            // Where `:` follows any word is a name.
            Some(word) if self.is_colon_at(1) && !word.is_never_a_name() => {
                let word = word.clone();
                self.at += 1;
                word
            }
            _ => self.name(what)?,
        };
        attempt.name = Some(name.clone());
        Ok(name)
    }

    fn constant(&mut self, attempt: &mut Attempt) -> Parsed<Constant> {
        let name = self.member_name(attempt, "the name of a constant")?;
        self.expect("=", " and a value")?;
        Ok(Constant { name, value: self.expression()? })
    }

    fn member_if(&mut self, attempt: &mut Attempt) -> Parsed<MemberIf> {
        let span = self.span();
        attempt.closed = true;
        let mut branches = vec![];
        loop {
            self.at += 1;
            let (condition, group) = self.condition()?;
            branches.push((condition, self.inside(&group)?.members()));
            if self.is_word("elif") {
                return Err(Error::new(self.span(), diag::elif_habit()));
            }
            if self.is_colon_at(1) || self.take_word("else").is_none() {
                return Ok(MemberIf { span, branches, otherwise: None });
            }
            if self.is_word("if") {
                continue;
            }
            let Some(group) = self.take_group(Delimiter::Brace) else {
                return Err(self.unexpected("`{` after `else`"));
            };
            return Ok(MemberIf { span, branches, otherwise: Some(self.inside(&group)?.members()) });
        }
    }

    fn tensor_member(&mut self, attempt: &mut Attempt, role: TensorRole) -> Parsed<TensorMember> {
        let name = self.member_name(attempt, &format!("the name of the {}", role.word()))?;
        self.expect(":", " and a type")?;
        let ty = self.parse_type()?;
        match &ty.kind {
            TypeKind::Tuple(_) => return Err(Error::new(ty.span, diag::tuple_member())),
            TypeKind::Tensor(tensor) => {
                if let Some(leading) = tensor.leading {
                    return Err(Error::new(leading, diag::leading_axes_of_member()));
                }
            }
            TypeKind::Scalar(_) | TypeKind::Poison => {}
        }
        let equals = self.take("=");
        let initialiser = match (role, equals) {
            (TensorRole::State, Some(span)) => return Err(Error::new(span, diag::state_initialiser())),
            (TensorRole::State, None) => None,
            (_, Some(_)) => Some(self.expression()?),
            (_, None) => return Err(Error::new(self.span(), diag::missing_initialiser(role.word(), &self.found()))),
        };
        Ok(TensorMember { role, name, ty, initialiser })
    }

    fn sub_layer(&mut self, attempt: &mut Attempt) -> Parsed<SubLayer> {
        let name = self.member_name(attempt, diag::MEMBER)?;
        self.expect(":", &format!(" and a layer after `{name}`"))?;
        if let Some(Token::Ident(word)) = self.peek(0)
            && Element::from_name(&word.name).is_some()
        {
            return Err(Error::new(word.span, diag::type_in_place_of_layer(&name.name, &word.name)));
        }
        let Some(group) = self.take_group(Delimiter::Bracket) else {
            return Ok(SubLayer { name, layer: self.layer_use("a layer")?, count: None });
        };
        let mut inside = self.inside(&group)?;
        let layer = inside.layer_use("a layer")?;
        inside.expect(";", " and the length of the array")?;
        let count = inside.expression()?;
        inside.expect_end()?;
        Ok(SubLayer { name, layer, count: Some(count) })
    }

    /// `pub`, `pub(crate)`, or nothing.
    pub(super) fn visibility(&mut self) -> Visibility {
        let start = self.at;
        if self.take_word("pub").is_none() {
            return Visibility::default();
        }
        let restricted = self.take_group(Delimiter::Parenthesis).is_some();
        Visibility { tokens: self.trees[start..self.at].iter().cloned().collect(), public: !restricted }
    }

    /// To the end of a member that has a mistake.
    pub(super) fn skip_member(&mut self, attempt: &Attempt) {
        let mut failed = self.at;
        // The first word of the next member may have been taken for a part of this one.
        if failed > attempt.body + 1 {
            self.at -= 1;
            failed -= usize::from(self.begins_member());
        }
        self.at = attempt.body;
        let mut depth = 0_i32;
        while !self.is_end() {
            let past = self.at >= failed;
            if past && self.at > attempt.body && self.begins_member() {
                return;
            }
            let operator = self.operator();
            match operator {
                Some("<") => depth += 1,
                Some(">") => depth -= 1,
                _ => {}
            }
            let braces = self.group_at(0, Delimiter::Brace).is_some();
            self.at += operator.map_or(1, str::len);
            // Behind a `,` that separates arguments no member begins.
            let comma = operator == Some(",") && depth <= 0 && (self.is_end() || self.begins_member());
            let separated = operator == Some(";") || comma;
            let closed = braces && !self.is(",") && !self.is(";") && !self.is_word("else");
            if past && (separated || closed) {
                return;
            }
        }
    }

    /// Whether a member seems to begin here.
    fn begins_member(&self) -> bool {
        match self.peek(0) {
            Some(Token::Punct('#', ..)) => self.group_at(1, Delimiter::Bracket).is_some(),
            Some(Token::Ident(word)) => {
                let colon = self.is_colon_at(1);
                let named = self.peek_ident(1).is_some();
                let keyword = ["pub", "fn", "let", "param", "buffer", "state"].iter().any(|other| word.is(other));
                colon || keyword && named
            }
            _ => false,
        }
    }
}

/// All functions among members with their attributes, those in branches too.
fn find_functions<'a>(members: &'a [Member], found: &mut Vec<(&'a Attributes, &'a Function)>) {
    for member in members {
        match &member.kind {
            MemberKind::Function(function) => found.push((&member.attributes, function)),
            MemberKind::If(choice) => {
                choice.branches.iter().for_each(|(_, members)| find_functions(members, found));
                choice.otherwise.iter().for_each(|members| find_functions(members, found));
            }
            _ => {}
        }
    }
}

/// The layers that members name, those in branches too.
pub(super) fn layer_uses<'a>(members: &'a [Member], found: &mut Vec<&'a LayerUse>) {
    for member in members {
        match &member.kind {
            MemberKind::Layer(layer) => found.push(&layer.layer),
            MemberKind::If(choice) => {
                choice.branches.iter().for_each(|(_, members)| layer_uses(members, found));
                choice.otherwise.iter().for_each(|members| layer_uses(members, found));
            }
            _ => {}
        }
    }
}

impl Definition {
    /// All functions with their attributes, those of conditional members too.
    pub fn functions(&self) -> Vec<(&Attributes, &Function)> {
        let mut found = vec![];
        find_functions(&self.members, &mut found);
        found
    }

    /// The functions that a model offers to Rust, whatever mistakes their bodies have.
    pub fn entries(&self) -> Vec<(&Attributes, &Function)> {
        self.functions().into_iter().filter(|(_, function)| !function.visibility.is_private()).collect()
    }
}

/// The members between braces.
pub(super) fn inside_braces(parser: &mut Parser<'_>, group: &Group) -> Vec<Member> {
    match parser.inside(group) {
        Ok(mut inside) => inside.members(),
        Err(error) => {
            parser.push(error);
            vec![]
        }
    }
}
