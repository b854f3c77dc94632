//! Types, dimensions, bounds, and the use of a layer with its arguments.

use super::ast::{
    Argument, Bounds, Dimension, DimensionKind, Dimensions, Element, ItemKind, LayerUse, TensorType, Type, TypeKind,
};
use super::parser::{Angles, Parsed, Parser};
use super::tokens::Token;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Group};

impl Element {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::F32, Self::U32, Self::I32, Self::U8, Self::Bool];

    /// As it is written, here and in Rust.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U8 => "u8",
            Self::Bool => "bool",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.name() == name)
    }
}

impl Type {
    /// Whether it, or a part of it, could not be read.
    pub fn is_poison(&self) -> bool {
        match &self.kind {
            TypeKind::Poison => true,
            TypeKind::Tuple(parts) => parts.iter().any(Self::is_poison),
            TypeKind::Scalar(_) | TypeKind::Tensor(_) => false,
        }
    }
}

impl Parser<'_> {
    pub(super) fn parse_type(&mut self) -> Parsed<Type> {
        let span = self.span();
        match self.peek(0).cloned() {
            Some(Token::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                self.at += 1;
                let kind = self.tuple_type(&group)?;
                Ok(Type { span, kind })
            }
            Some(Token::Group(group)) if group.delimiter() == Delimiter::None => {
                self.at += 1;
                let mut inside = self.inside(&group)?;
                let ty = inside.parse_type()?;
                inside.expect_end()?;
                Ok(ty)
            }
            Some(Token::Ident(_)) => {
                let name = self.name("a type")?;
                let Some(element) = Element::from_name(&name.name) else {
                    return Err(Error::new(span, diag::unknown_type(&name.name, &Element::ALL.map(Element::name))));
                };
                let kind = match self.take_group(Delimiter::Bracket) {
                    Some(group) => self.axes(element, &group)?,
                    None => TypeKind::Scalar(element),
                };
                Ok(Type { span, kind })
            }
            _ => Err(self.unexpected("a type")),
        }
    }

    fn tuple_type(&mut self, group: &Group) -> Parsed<TypeKind> {
        let mut inside = self.inside(group)?;
        let mut parts = vec![];
        while !inside.is_end() {
            parts.push(inside.parse_type()?);
            inside.comma_or_end()?;
        }
        if parts.is_empty() { Err(Error::new(group.span(), diag::empty_tuple())) } else { Ok(TypeKind::Tuple(parts)) }
    }

    fn axes(&mut self, element: Element, group: &Group) -> Parsed<TypeKind> {
        let mut inside = self.inside(group)?;
        if inside.is_end() {
            return Err(Error::new(group.span(), diag::no_axes(element.name())));
        }
        let leading = inside.take("..");
        if leading.is_some() {
            inside.comma_or_end()?;
        }
        let mut axes = vec![];
        while !inside.is_end() {
            if inside.is("..") {
                return Err(Error::new(inside.span(), diag::late_leading_axes()));
            }
            if inside.is(":") || inside.is("...") {
                return Err(Error::new(inside.span(), diag::axis_without_size()));
            }
            axes.push(inside.expression()?);
            inside.comma_or_end()?;
        }
        Ok(TypeKind::Tensor(TensorType { element, leading, axes }))
    }

    /// `low..high` or `low..=high`, and `step` where that has a meaning.
    pub(super) fn bounds(&mut self, with_step: bool) -> Parsed<Bounds> {
        if self.is("..") || self.is("..=") {
            return Err(self.unexpected("the least value"));
        }
        let low = self.expression()?;
        self.bounds_from(low, with_step)
    }

    pub(super) fn bounds_from(&mut self, low: super::ast::Expr, with_step: bool) -> Parsed<Bounds> {
        let span = self.span();
        let inclusive = self.is("..=");
        if self.take("..").is_none() && self.take("..=").is_none() {
            return Err(self.unexpected("`..` or `..=`"));
        }
        let high = self.expression()?;
        let step = if with_step && self.take_word("step").is_some() { Some(self.expression()?) } else { None };
        Ok(Bounds { low, high, inclusive, step, span })
    }

    /// `Linear<784, hidden, bias = false>`
    pub(super) fn layer_use(&mut self, what: &str) -> Parsed<LayerUse> {
        // What a macro took as a type.
        if let Some(group) = self.take_group(Delimiter::None) {
            let mut inside = self.inside(&group)?;
            inside.angles = Angles::No;
            let layer = inside.layer_use(what)?;
            inside.expect_end()?;
            return Ok(layer);
        }
        let name = self.name(what)?;
        if self.is("::") {
            return Err(Error::new(self.span(), diag::path_in_place_of_name()));
        }
        if let Some(group) = self.group_at(0, Delimiter::Parenthesis) {
            return Err(Error::new(group.span_open(), diag::parentheses_of_layer()));
        }
        let mut arguments: Vec<Argument> = vec![];
        if self.is_char('<') {
            let outer = std::mem::replace(&mut self.angles, Angles::Here);
            let read = self.layer_arguments(&mut arguments);
            self.angles = outer;
            read?;
        }
        Ok(LayerUse { name, arguments })
    }

    fn layer_arguments(&mut self, arguments: &mut Vec<Argument>) -> Parsed<()> {
        self.at += 1;
        while !self.is_char('>') {
            let argument = self.argument(arguments)?;
            arguments.push(argument);
            if self.take(",").is_none() && !self.is_char('>') {
                return Err(self.after_expression("`,` or `>`"));
            }
        }
        self.at += 1;
        Ok(())
    }

    /// `<vocab = 49152, seq in 1..=2048>` of a definition, or nothing.
    pub(super) fn dimensions(&mut self, item: ItemKind) -> Dimensions {
        let mut dimensions = Dimensions { list: vec![], complete: true };
        if !self.is_char('<') {
            return dimensions;
        }
        self.at += 1;
        let outer = std::mem::replace(&mut self.angles, Angles::Here);
        while !self.is_char('>') {
            if let Err(error) = self.dimension_and_comma(item, &mut dimensions) {
                self.push(error);
                dimensions.complete &= self.skip_dimension();
            }
            if self.ends_dimensions() {
                break;
            }
        }
        if self.is_char('>') {
            self.at += 1;
        } else if dimensions.complete {
            let error = self.unexpected("`,` or `>`");
            self.push(error);
            dimensions.complete = false;
        }
        self.angles = outer;
        dimensions
    }

    fn dimension_and_comma(&mut self, item: ItemKind, dimensions: &mut Dimensions) -> Parsed<()> {
        self.refuse_attributes();
        let name = self.name("a dimension").inspect_err(|_| dimensions.complete = false)?;
        let kind = self.dimension_kind().inspect_err(|_| {
            dimensions.list.push(Dimension { name: name.clone(), kind: DimensionKind::Poison });
        })?;
        let misplaced = match (&kind, item) {
            (DimensionKind::Runtime(_), ItemKind::Layer) => Some(diag::runtime_dimension_of_layer(&name.name)),
            (DimensionKind::Required, ItemKind::Model) => Some(diag::required_dimension_of_model(&name.name)),
            _ => None,
        };
        let kind = match misplaced {
            Some(message) if self.is(",") || self.is_char('>') => {
                self.errors.push(name.span, message);
                DimensionKind::Poison
            }
            _ => kind,
        };
        if self.take(",").is_some() || self.is_char('>') {
            dimensions.list.push(Dimension { name, kind });
            return Ok(());
        }
        let error = self.after_expression("`,` or `>`");
        let forgotten = self.peek_ident(0).is_some();
        // Without a name behind it, what follows may be a part of it.
        let kind = if forgotten || self.ends_dimensions() { kind } else { DimensionKind::Poison };
        dimensions.list.push(Dimension { name, kind });
        if !forgotten {
            return Err(error);
        }
        self.push(error);
        Ok(())
    }

    fn dimension_kind(&mut self) -> Parsed<DimensionKind> {
        if self.take("=").is_some() {
            self.expression().map(DimensionKind::Default)
        } else if self.take_word("in").is_some() {
            self.bounds(true).map(DimensionKind::Runtime)
        } else {
            Ok(DimensionKind::Required)
        }
    }

    /// To the next dimension or the `>`; false where the end of the list cannot be found.
    fn skip_dimension(&mut self) -> bool {
        while !self.ends_dimensions() {
            if self.is_char('>') || self.take(",").is_some() {
                return true;
            }
            self.at += 1;
        }
        false
    }

    fn ends_dimensions(&self) -> bool {
        self.is_end() || self.is(";") || self.group_at(0, Delimiter::Brace).is_some()
    }
}
