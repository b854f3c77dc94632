//! A part of a row program as a WGSL function of scalars.
//!
//! The caller says where inputs, coordinates and registers that it already has come from; kernels that handle four
//! elements at once call the function for each.

use std::collections::BTreeSet;

use crate::dim::{Dim, Shape};
use crate::pointwise::Bin;
use crate::prog::{Const, DType, Instr, Prog, Reg};
use crate::schedule::Word;

use super::Unsupported;
use super::launch::{Launch, value_type};

/// A program with shapes and types of its instructions.
#[derive(Clone)]
pub(super) struct Typed<'p> {
    /// The program.
    pub prog: &'p Prog,
    /// What its words and functions are called after.
    pub name: String,
    /// The shape of every instruction.
    pub shapes: Vec<Shape>,
    /// The type of every instruction.
    pub dtypes: Vec<DType>,
}

/// What a function takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Inlet {
    /// The element of an input.
    In(u8),
    /// The coordinate along an axis of the program's space, counted from the last.
    Coordinate(u8),
    /// The value of a register.
    Given(Reg),
}

/// A function with one result.
pub(super) struct Piece {
    name: Option<String>,
    /// The name of the program that it is a part of.
    pub owner: String,
    /// Its parameters in order.
    pub inlets: Vec<Inlet>,
    /// The expression where there is no function.
    inline: Option<String>,
    /// The type of the result.
    pub dtype: DType,
}

impl<'p> Typed<'p> {
    /// None where arguments do not fit.
    pub(super) fn new(prog: &'p Prog, name: &str, shapes: &[&Shape], dtypes: &[DType]) -> Result<Self, Unsupported> {
        let fits = || Some((prog.shapes(shapes)?, prog.dtypes(dtypes)?));
        let (shapes, dtypes) = fits().ok_or_else(|| Unsupported::new("arguments that do not fit their program"))?;
        Ok(Typed { prog, name: name.into(), shapes, dtypes })
    }

    /// The instruction in a register.
    pub(super) fn instr(&self, reg: Reg) -> &Instr {
        &self.prog.code[usize::from(reg)]
    }

    /// The type of a register.
    pub(super) fn dtype(&self, reg: Reg) -> DType {
        self.dtypes[usize::from(reg)]
    }

    /// Whether the last axis of a register's shape is 1 or absent.
    pub(super) fn is_row_scalar(&self, reg: Reg) -> bool {
        self.shapes[usize::from(reg)].last().is_none_or(Dim::is_one)
    }

    /// The operands whose values count: of an index, only the shape does.
    pub(super) fn needs(&self, reg: Reg) -> Vec<Reg> {
        match self.instr(reg) {
            Instr::Index(..) => vec![],
            other => other.operands().collect(),
        }
    }

    /// Whether an index instruction is 0 everywhere.
    fn is_zero_index(&self, axis: u8, of: Reg) -> bool {
        let shape = &self.shapes[usize::from(of)];
        shape.len().checked_sub(1 + usize::from(axis)).is_none_or(|axis| shape[axis].is_one())
    }

    /// The axes, counted from the last, along which coordinates are asked for.
    pub(super) fn coordinates(&self) -> BTreeSet<u8> {
        let of = |instr: &Instr| match instr {
            Instr::Index(axis, of) if !self.is_zero_index(*axis, *of) => Some(*axis),
            _ => None,
        };
        self.prog.code.iter().filter_map(of).collect()
    }

    /// The inputs whose values are read.
    pub(super) fn inputs_read(&self) -> BTreeSet<u8> {
        let mut seen = BTreeSet::new();
        let mut todo = vec![self.prog.root()];
        while let Some(reg) = todo.pop() {
            if seen.insert(reg) {
                todo.extend(self.needs(reg));
            }
        }
        seen.iter().filter_map(|reg| if let Instr::In(k) = self.instr(*reg) { Some(*k) } else { None }).collect()
    }

    /// The function that computes `root` where the registers `given` are known.
    pub(super) fn piece(
        &self,
        launch: &mut Launch<'_>,
        root: Reg,
        given: &BTreeSet<Reg>,
        suffix: &str,
    ) -> Result<Piece, Unsupported> {
        let (mut order, mut todo) = (BTreeSet::new(), vec![root]);
        while let Some(reg) = todo.pop() {
            if order.insert(reg) && !given.contains(&reg) {
                todo.extend(self.needs(reg));
            }
        }
        let mut inlets = BTreeSet::new();
        let mut lines = vec![];
        let mut names: Vec<String> = vec![String::new(); self.prog.code.len()];
        for &reg in &order {
            let (name, line) = self.instruction(launch, reg, given, &names, &mut inlets)?;
            names[usize::from(reg)] = name.clone();
            lines.extend(line.map(|line| format!("    let {name} = {line};\n")));
        }
        let dtype = self.dtype(root);
        let result = names[usize::from(root)].clone();
        let inlets: Vec<Inlet> = inlets.into_iter().collect();
        if lines.is_empty() {
            let inline = inlets.is_empty().then_some(result);
            return Ok(Piece { name: None, owner: self.name.clone(), inlets, inline, dtype });
        }
        let name = launch.named(&format!("{}_{suffix}", self.name));
        let parameters: Vec<String> = inlets
            .iter()
            .map(|inlet| match inlet {
                Inlet::In(k) => format!("x{k}: {}", value_type(self.input_type(*k))),
                Inlet::Coordinate(axis) => format!("i{axis}: u32"),
                Inlet::Given(reg) => format!("r{reg}: {}", value_type(self.dtype(*reg))),
            })
            .collect();
        launch.function(format!(
            "fn {name}({}) -> {} {{\n{}    return {result};\n}}\n",
            parameters.join(", "),
            value_type(dtype),
            lines.concat()
        ));
        Ok(Piece { name: Some(name), owner: self.name.clone(), inlets, inline: None, dtype })
    }

    /// A constant as an operand. Shader compilers evaluate operations on constants alone, and refuse to where they
    /// overflow or divide by 0; so they must not see that these are constants.
    pub(super) fn constant(&self, reg: Reg, value: Const) -> Result<String, Unsupported> {
        let literal = literal(value)?;
        let is_constant = |reg: Reg| matches!(self.instr(reg), Instr::Const(_));
        let is_alone = |instr: &Instr| {
            let divides = matches!(instr, Instr::Bin(Bin::Div | Bin::Rem, _, b) if *b == reg)
                && self.dtype(reg) != DType::F32
                && value.value() == 0.0;
            instr.operands().any(|operand| operand == reg) && (divides || instr.operands().all(is_constant))
        };
        match self.prog.code.iter().any(is_alone) {
            true => Ok(format!("select({literal}, {literal}, p.groups == 0u)")),
            false => Ok(literal),
        }
    }

    /// The type of an input.
    pub(super) fn input_type(&self, k: u8) -> DType {
        let position = self.prog.code.iter().position(|instr| *instr == Instr::In(k));
        position.map_or(DType::F32, |reg| self.dtypes[reg])
    }

    /// The name of a register and, where it is more than a name, its expression.
    fn instruction(
        &self,
        launch: &mut Launch<'_>,
        reg: Reg,
        given: &BTreeSet<Reg>,
        names: &[String],
        inlets: &mut BTreeSet<Inlet>,
    ) -> Result<(String, Option<String>), Unsupported> {
        let name = format!("r{reg}");
        if given.contains(&reg) {
            inlets.insert(Inlet::Given(reg));
            return Ok((name, None));
        }
        Ok(match self.instr(reg) {
            Instr::In(k) => {
                inlets.insert(Inlet::In(*k));
                (format!("x{k}"), None)
            }
            Instr::Const(value) => (self.constant(reg, *value)?, None),
            Instr::Index(axis, of) if self.is_zero_index(*axis, *of) => ("0u".into(), None),
            Instr::Index(axis, _) => {
                inlets.insert(Inlet::Coordinate(*axis));
                (format!("i{axis}"), None)
            }
            other => (name, Some(self.expression(launch, reg, other, names))),
        })
    }

    /// The expression of an instruction over the names of its operands.
    pub(super) fn expression(&self, launch: &mut Launch<'_>, reg: Reg, instr: &Instr, names: &[String]) -> String {
        let of = |reg: &Reg| names[usize::from(*reg)].as_str();
        match instr {
            Instr::Extent(dim) => {
                let word = launch.word(&format!("{}_extent{reg}", self.name), Word::SizeAsFloat(dim.clone()));
                format!("bitcast<f32>({word})")
            }
            Instr::Un(op, a) => {
                op.helper().into_iter().for_each(|helper| launch.helper(helper));
                op.wgsl().replace("$0", of(a))
            }
            // WGSL does not order truth values.
            Instr::Bin(Bin::Lt, a, b) if self.dtype(*a) == DType::Bool => format!("!{} && {}", of(a), of(b)),
            Instr::Bin(Bin::Le, a, b) if self.dtype(*a) == DType::Bool => format!("!{} || {}", of(a), of(b)),
            Instr::Bin(op, a, b) => {
                op.helper().into_iter().for_each(|helper| launch.helper(helper));
                op.wgsl().replace("$0", of(a)).replace("$1", of(b))
            }
            Instr::Select(c, a, b) => format!("select({}, {}, {})", of(b), of(a), of(c)),
            Instr::Cast(DType::Bool, a) => match self.dtype(*a) {
                DType::F32 => format!("{} != 0.0f", of(a)),
                DType::U32 => format!("{} != 0u", of(a)),
                DType::I32 => format!("{} != 0i", of(a)),
                DType::Bool => of(a).to_string(),
            },
            Instr::Cast(dtype, a) => format!("{}({})", value_type(*dtype), of(a)),
            // Over an axis of one element.
            Instr::RowSum(a) | Instr::RowMax(a) => of(a).to_string(),
            Instr::In(_) | Instr::Const(_) | Instr::Index(..) => of(&reg).to_string(),
        }
    }
}

impl Piece {
    /// A call with what the caller has for each parameter.
    pub(super) fn call(&self, mut of: impl FnMut(&Inlet) -> String) -> String {
        let arguments: Vec<String> = self.inlets.iter().map(&mut of).collect();
        match (&self.name, &self.inline) {
            (Some(name), _) => format!("{name}({})", arguments.join(", ")),
            (None, Some(inline)) => inline.clone(),
            (None, None) => arguments.concat(),
        }
    }

    /// The inputs among its parameters.
    pub(super) fn inputs(&self) -> BTreeSet<u8> {
        self.inlets.iter().filter_map(|inlet| if let Inlet::In(k) = inlet { Some(*k) } else { None }).collect()
    }

    /// Whether it hands its only parameter on.
    pub(super) fn is_identity(&self) -> bool {
        self.name.is_none() && self.inline.is_none()
    }
}

/// A constant in WGSL, which knows neither infinities nor NaN.
pub(super) fn literal(value: Const) -> Result<String, Unsupported> {
    Ok(match value {
        Const::Float(bits) => {
            let value = f64::from_bits(bits);
            if value.is_nan() {
                return Err(Unsupported::new("a constant that is not a number"));
            }
            let value = value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
            if value.is_sign_negative() { format!("({value:?}f)") } else { format!("{value:?}f") }
        }
        Const::Uint(value) => format!("{value}u"),
        // The least integer has no literal of its own.
        Const::Int(i32::MIN) => "(-2147483647i - 1i)".into(),
        Const::Int(value) if value < 0 => format!("({value}i)"),
        Const::Int(value) => format!("{value}i"),
        Const::Bool(value) => value.to_string(),
    })
}

/// `vec4` of an expression for each component.
pub(super) fn four(dtype: DType, mut of: impl FnMut(usize) -> String) -> String {
    let each: Vec<String> = (0..4).map(&mut of).collect();
    format!("vec4<{}>({})", value_type(dtype), each.join(", "))
}
