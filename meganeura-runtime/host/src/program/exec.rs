//! Runs a compiled program over a rectangle of its result, tile by tile, in scratch words of the caller's.

use std::ops::Range;

use pulp::Arch;
use smallvec::SmallVec;

use super::compile::{CHUNK, Class, Compiled, Input, Op, Place, Section, Step};
use super::fold::{self, Cascade};
use super::loops::{self, Out, Tile, View};
use super::space::Coordinate;
use super::{Argument, Output};

/// An input of a run.
#[derive(Clone, Copy)]
struct Bound {
    first: *const u32,
    /// Where the first row of the tile begins.
    base: usize,
    /// Words from row to row, if it is one distance for all.
    row: Option<usize>,
    /// Counts rows and columns from the rectangle's first.
    panel: bool,
    /// The register that its elements are copied to before they are read; none if they are read where they lie.
    copied: Option<usize>,
}

struct Run<'c> {
    code: &'c Compiled,
    arch: Arch,
    inputs: SmallVec<[Bound; 12]>,
    ones: *mut u32,
    narrow: *mut u32,
    /// Words of each value that a row has one word of.
    narrow_slot: usize,
    wide: *mut u32,
    kept: *mut u32,
    copies: *mut u32,
    out: *mut u32,
    out_row: Option<usize>,
    out_panel: bool,
    rows: Range<usize>,
    columns: Range<usize>,
}

/// The rows of a tile and the columns of a chunk.
#[derive(Clone, Copy)]
struct At {
    row: usize,
    count: usize,
    /// Counted as the value's own.
    column: usize,
    /// Elements of a chunk; none: whole rows.
    chunk: Option<usize>,
}

fn aligned(words: usize) -> usize {
    words.next_multiple_of(16)
}

impl Compiled {
    fn narrow_slot(&self) -> usize {
        aligned(if self.reduces { self.together } else { CHUNK })
    }

    /// Scratch words of a run.
    pub(super) fn scratch(&self) -> usize {
        let inputs = self.inputs.iter().flatten().filter(|input| input.class == Class::Wide).count();
        let kept: usize = self.kept.iter().map(|length| aligned(*length)).sum();
        aligned(self.ones.len().max(1)) + self.rows * self.narrow_slot() + (self.wide + inputs) * self.slot + kept
    }

    /// # Safety
    ///
    /// Nobody else writes the inputs or touches the rectangle of the result. An input may lie over the result only
    /// exactly, each element over that which is computed from it, in a program that reduces nothing.
    pub(super) unsafe fn run(
        &self,
        arch: Arch,
        rows: Range<usize>,
        columns: Range<usize>,
        arguments: &[Argument<'_>],
        output: &Output<'_, '_>,
        scratch: &mut [f32],
    ) {
        assert!(rows.end <= self.space.rows && columns.end <= self.space.columns, "a rectangle of the result");
        assert!(!self.reduces || columns == (0..self.space.columns), "reductions see whole rows");
        assert!(scratch.len() >= self.scratch(), "the caller brings scratch");
        assert!(arguments.len() == self.inputs.len(), "an argument for every input");
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        let rectangle = |stride: usize, width: usize| (rows.len() - 1) * stride + width;
        let (out, out_row, out_panel, out_words) = match output {
            Output::Whole(target) => {
                assert!(target.words() >= self.span, "a launch checks its stretches before it runs");
                (target.first(), self.moves.row, false, self.span)
            }
            Output::Panel(target, stride) => {
                assert!(target.words() >= rectangle(*stride, columns.len()), "a panel holds its rectangle");
                (target.first(), Some(*stride), true, rectangle(*stride, columns.len()))
            }
        };
        let width = if self.reduces { 0 } else { columns.len() };
        let together = match self.reduces {
            true => self.together,
            false if width >= CHUNK / 2 => 1,
            false => (CHUNK / width).min(rows.len()),
        };
        let mut copies = 0;
        let mut inputs: SmallVec<[Bound; 12]> = SmallVec::new();
        for (argument, input) in arguments.iter().zip(&self.inputs) {
            let (source, row, panel) = match argument {
                Argument::Whole(source) => (source, input.as_ref().and_then(|input| input.moves.row), false),
                Argument::Panel(source, stride) => (source, Some(*stride), true),
            };
            let mut bound = Bound { first: source.first(), base: 0, row, panel, copied: None };
            if let Some(input) = input {
                let needed = match argument {
                    Argument::Whole(_) => input.span,
                    Argument::Panel(_, stride) if input.class == Class::Wide => rectangle(*stride, columns.len()),
                    Argument::Panel(_, stride) => rectangle(*stride, 1),
                };
                assert!(source.words() >= needed, "a launch checks its stretches before it runs");
                let (from, to) = (source.address(), out.addr());
                let apart = from + 4 * needed <= to || to + 4 * out_words <= from;
                let dense = panel || input.moves.column == 1 || input.length <= 1;
                if input.class == Class::Wide && (!apart || !dense || (together > 1 && row.is_none())) {
                    debug_assert!(apart || !self.reduces, "a launch refuses this");
                    bound.copied = Some(copies);
                    copies += 1;
                }
            }
            inputs.push(bound);
        }
        let words: &mut [u32] = bytemuck::cast_slice_mut(scratch);
        words[..self.ones.len()].copy_from_slice(&self.ones);
        let ones = words.as_mut_ptr();
        let narrow_slot = self.narrow_slot();
        let kept: usize = self.kept.iter().map(|length| aligned(*length)).sum();
        // SAFETY: `scratch` words are there, and these parts of them follow each other.
        let (narrow, wide, kept_at, copied_at) = unsafe {
            let narrow = ones.add(aligned(self.ones.len().max(1)));
            let wide = narrow.add(self.rows * narrow_slot);
            let kept_at = wide.add(self.wide * self.slot);
            (narrow, wide, kept_at, kept_at.add(kept))
        };
        let mut run = Run {
            code: self,
            arch,
            inputs,
            ones,
            narrow,
            narrow_slot,
            wide,
            kept: kept_at,
            copies: copied_at,
            out,
            out_row,
            out_panel,
            rows: rows.clone(),
            columns,
        };
        // SAFETY: stretches are as long as asserted above, registers as `scratch` says; the rest is the caller's.
        unsafe {
            run.once();
            let mut row = rows.start;
            while row < rows.end {
                let count = together.min(rows.end - row);
                run.tile(row, count);
                row += count;
            }
        }
    }
}

impl Run<'_> {
    /// # Safety
    ///
    /// As for `Compiled::run`; so for all below.
    unsafe fn once(&mut self) {
        for (bound, input) in self.inputs.iter().zip(&self.code.inputs) {
            if let Some(Input { class: Class::One, slot, .. }) = input {
                // SAFETY: the input has a word, and the slot is one of `ones`.
                unsafe { *self.ones.add(*slot) = *bound.first };
            }
        }
        let at = At { row: self.rows.start, count: 1, column: 0, chunk: None };
        for step in &self.code.once {
            // SAFETY: the caller's.
            unsafe { self.step(step, at) };
        }
    }

    fn offset(&self, k: usize, input: &Input, row: usize) -> usize {
        match self.inputs[k] {
            Bound { panel: true, row: stride, .. } => (row - self.rows.start) * stride.unwrap_or(0),
            _ => self.code.space.offset(&input.moves, row),
        }
    }

    unsafe fn tile(&mut self, row: usize, count: usize) {
        let code = self.code;
        for (k, input) in code.inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            let base = self.offset(k, input, row);
            self.inputs[k].base = base;
            if input.class == Class::Row {
                for own in 0..count {
                    let at = match self.inputs[k].row {
                        Some(stride) => base + own * stride,
                        None => self.offset(k, input, row + own),
                    };
                    // SAFETY: rows of the input, and a slot of `count` words.
                    unsafe { *self.narrow.add(input.slot * self.narrow_slot + own) = *self.inputs[k].first.add(at) };
                }
            }
        }
        let at = At { row, count, column: 0, chunk: None };
        for section in &code.sections {
            match section.walk {
                // SAFETY: the caller's.
                Some(length) => unsafe { self.walk(section, length, at) },
                None => {
                    // SAFETY: the caller's.
                    unsafe { self.copy(section, at) };
                    for step in &section.steps {
                        // SAFETY: the caller's.
                        unsafe { self.step(step, at) };
                    }
                }
            }
        }
    }

    unsafe fn walk(&mut self, section: &Section, length: usize, at: At) {
        let columns = if self.code.reduces { 0..length } else { self.columns.clone() };
        let mut folds: SmallVec<[Cascade; 4]> = SmallVec::new();
        for step in &section.steps {
            if let Op::Fold(fold, dtype) = step.op {
                folds.push(Cascade::new(fold, dtype));
            }
        }
        let mut column = columns.start;
        while column < columns.end {
            // Several rows are never longer than a chunk.
            let chunk = CHUNK.min(columns.end - column);
            let at = At { column, chunk: Some(chunk), ..at };
            // SAFETY: the caller's.
            unsafe { self.copy(section, at) };
            let mut fold = 0;
            for step in &section.steps {
                // SAFETY: the caller's.
                unsafe { self.step(step, at) };
                if let Op::Fold(..) = step.op {
                    // SAFETY: the step has just written its word.
                    folds[fold].push(unsafe { *self.out(step, at).first });
                    fold += 1;
                }
            }
            column += chunk;
        }
        let gathered = section.steps.iter().filter(|step| matches!(step.op, Op::Fold(..)));
        for (step, fold) in gathered.zip(&folds) {
            // SAFETY: a word of a row's value.
            unsafe { *self.out(step, at).first = fold.total() };
        }
    }

    /// Copies what a section reads of inputs that it must not read where they lie.
    unsafe fn copy(&self, section: &Section, at: At) {
        for (k, input) in self.code.inputs.iter().enumerate() {
            let (Some(input), Some(copied)) = (input, self.inputs[k].copied) else { continue };
            let reads = |step: &Step| step.operands[..step.count].contains(&Place::Input(k));
            if !section.steps.iter().any(reads) {
                continue;
            }
            let bound = self.inputs[k];
            let length = at.chunk.unwrap_or(input.length);
            let (step, first) = match bound.panel {
                true => (1, at.column - self.columns.start),
                false => (input.moves.column, at.column * input.moves.column),
            };
            for own in 0..at.count {
                let base = match bound.row {
                    Some(stride) => bound.base + own * stride,
                    None => self.offset(k, input, at.row + own),
                };
                // SAFETY: a row of the input, one word at a time, into a register.
                unsafe {
                    let (from, to) =
                        (bound.first.add(base + first), self.copies.add(copied * self.code.slot + own * length));
                    if step == 1 {
                        std::ptr::copy_nonoverlapping(from, to, length);
                    } else {
                        (0..length).for_each(|k| *to.add(k) = *from.add(k * step));
                    }
                }
            }
        }
    }

    fn length(&self, step: &Step, at: At) -> usize {
        match (at.chunk, step.class) {
            (Some(chunk), Class::Wide) => chunk,
            (Some(chunk), _) if matches!(step.op, Op::Fold(..)) => chunk,
            _ => step.length,
        }
    }

    unsafe fn out(&self, step: &Step, at: At) -> Out {
        let length = self.length(step, at);
        // SAFETY: parts of scratch and, for the result, of a stretch that was measured.
        unsafe {
            match step.out {
                Place::One(slot) => Out { first: self.ones.add(slot), row: 1 },
                Place::Row(slot) => Out { first: self.narrow.add(slot * self.narrow_slot), row: at.count },
                Place::Wide(register) => Out { first: self.wide.add(register * self.code.slot), row: length },
                Place::Kept(buffer) => Out { first: self.buffer(buffer).add(at.column), row: length },
                Place::Result if self.out_panel => {
                    let row = self.out_row.unwrap_or(0);
                    let (first, column) = ((at.row - self.rows.start) * row, self.first_column(at));
                    Out { first: self.out.add(first + column - self.columns.start), row }
                }
                Place::Result => {
                    let first = self.code.space.offset(&self.code.moves, at.row);
                    Out { first: self.out.add(first + self.first_column(at)), row: self.out_row.unwrap_or(0) }
                }
                Place::Input(_) => unreachable!("inputs are no results"),
            }
        }
    }

    fn first_column(&self, at: At) -> usize {
        if at.chunk.is_some() { at.column } else { self.columns.start }
    }

    unsafe fn buffer(&self, buffer: usize) -> *mut u32 {
        let before: usize = self.code.kept[..buffer].iter().map(|length| aligned(*length)).sum();
        // SAFETY: a part of scratch.
        unsafe { self.kept.add(before) }
    }

    /// An operand, as a step over rows (`wide`) or over what rows have one word of sees it.
    unsafe fn view(&self, place: Place, wide: bool, length: usize, at: At) -> View {
        // SAFETY: parts of scratch and of inputs that were measured.
        unsafe {
            match place {
                Place::One(slot) => View::narrow(self.ones.add(slot), 0),
                Place::Row(slot) => {
                    let first = self.narrow.add(slot * self.narrow_slot);
                    if wide { View::narrow(first, 1) } else { View::wide(first, at.count) }
                }
                Place::Wide(register) => View::wide(self.wide.add(register * self.code.slot), length),
                Place::Kept(buffer) => View::wide(self.buffer(buffer).add(at.column), length),
                Place::Input(k) => {
                    let bound = self.inputs[k];
                    if let Some(copied) = bound.copied {
                        return View::wide(self.copies.add(copied * self.code.slot), length);
                    }
                    let column = if bound.panel { at.column - self.columns.start } else { at.column };
                    View::wide(bound.first.add(bound.base + column), bound.row.unwrap_or(0))
                }
                Place::Result => unreachable!("nothing reads the result"),
            }
        }
    }

    unsafe fn step(&self, step: &Step, at: At) {
        // Rows of a result that lie at several distances are written one by one.
        if step.out == Place::Result && at.count > 1 && self.out_row.is_none() {
            for own in 0..at.count {
                // SAFETY: the caller's.
                unsafe { self.step_at(step, at, own..own + 1) };
            }
            return;
        }
        // SAFETY: the caller's.
        unsafe { self.step_at(step, at, 0..at.count) };
    }

    /// A step over some rows of the tile.
    unsafe fn step_at(&self, step: &Step, at: At, own: Range<usize>) {
        let (arch, length) = (self.arch, self.length(step, at));
        let folds = matches!(step.op, Op::Fold(..));
        let wide = step.class == Class::Wide || folds;
        let tile = match step.class {
            Class::Wide => Tile { rows: own.len(), length },
            Class::Row if folds => Tile { rows: at.count, length },
            Class::Row => Tile { rows: 1, length: at.count },
            Class::One => Tile { rows: 1, length: 1 },
        };
        // SAFETY: the caller's.
        let out = unsafe { self.out(step, At { row: at.row + own.start, count: at.count, ..at }) };
        // SAFETY: the caller's; rows of the tile.
        let x = |k: usize| unsafe { self.view(step.operands[k], wide, length, at).from(own.start) };
        match step.op {
            Op::Un(op, dtype) => loops::unary(arch, op, dtype, tile, out, x(0)),
            Op::Bin(op, dtype) => loops::binary(arch, op, dtype, tile, out, x(0), x(1)),
            Op::MulAdd => loops::mul_add(arch, tile, out, [x(0), x(1), x(2)]),
            Op::Select => loops::select(arch, tile, out, [x(0), x(1), x(2)]),
            Op::Cast(from, to) => loops::cast(arch, from, to, tile, out, x(0)),
            Op::Copy => loops::copy(arch, tile, out, x(0)),
            // One word a row is a row of one word.
            Op::Fold(fold, dtype) => fold::rows(arch, fold, dtype, tile, out, x(0).widened()),
            Op::Index(coordinate) => {
                let first = at.row + own.start;
                let of = |row: usize, column: usize| match coordinate {
                    Coordinate::Zero => 0,
                    Coordinate::Column => column as u32,
                    Coordinate::Row { inner, size } => (row / inner % size) as u32,
                };
                if step.class == Class::Row {
                    for k in 0..tile.length {
                        // SAFETY: a word for each row.
                        unsafe { *out.first.add(k) = of(first + k, 0) };
                    }
                    return;
                }
                for row in 0..tile.rows {
                    for k in 0..length {
                        // SAFETY: an element of the tile.
                        unsafe { *out.first.add(row * out.row + k) = of(first + row, at.column + k) };
                    }
                }
            }
        }
    }
}
