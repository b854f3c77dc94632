//! Programs to test with.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Instr, Leaf, Linker, Prog, Reg, finish_one};

/// A program over `inputs` arguments, all of which it keeps, in order.
pub(crate) fn program(inputs: u32, build: impl FnOnce(&mut Linker, &[Reg]) -> Reg) -> Prog {
    let mut link = Linker::default();
    let leaves: Vec<Leaf> = (0..inputs).map(Leaf::Arg).collect();
    let registers: Vec<Reg> = leaves.iter().map(|leaf| link.leaf(*leaf)).collect();
    let root = build(&mut link, &registers);
    link.finish(&[root], &leaves).0.remove(0)
}

/// The same without the arguments that only shape it.
pub(crate) fn closed(build: impl FnOnce(&mut Linker) -> Reg) -> Prog {
    let mut link = Linker::default();
    let root = build(&mut link);
    finish_one(link, root).0
}

pub(crate) fn silu() -> Prog {
    program(1, |l, x| {
        let s = l.un(Un::Sigmoid, x[0]);
        l.mul(x[0], s)
    })
}

pub(crate) fn add() -> Prog {
    Prog::of(&Instr::Bin(Bin::Add, 0, 1))
}

/// Softmax of a row.
pub(crate) fn softmax() -> Prog {
    program(1, |l, x| softmax_of(l, x[0]))
}

pub(crate) fn softmax_of(l: &mut Linker, x: Reg) -> Reg {
    let max = l.push(Instr::RowMax(x));
    let less = l.bin(Bin::Sub, x, max);
    let e = l.un(Un::Exp, less);
    let sum = l.push(Instr::RowSum(e));
    l.bin(Bin::Div, e, sum)
}

/// RmsNorm with a gain; the size of the row is `n`.
pub(crate) fn rms_norm(n: &Dim) -> Prog {
    let n = n.clone();
    program(2, |l, x| {
        let scale = rms_scale(l, x[0], &n);
        let scaled = l.mul(x[0], scale);
        l.mul(scaled, x[1])
    })
}

/// 1 / root mean square of a row.
pub(crate) fn rms_scale(l: &mut Linker, x: Reg, n: &Dim) -> Reg {
    let square = l.mul(x, x);
    let sum = l.push(Instr::RowSum(square));
    let size = l.push(Instr::Extent(n.clone()));
    let mean = l.bin(Bin::Div, sum, size);
    let eps = l.constant(1e-5);
    let inside = l.bin(Bin::Add, mean, eps);
    l.un(Un::Rsqrt, inside)
}

/// Layer norm: mean, then the variance of what is left.
pub(crate) fn layer_norm(n: &Dim) -> Prog {
    let n = n.clone();
    program(3, |l, x| {
        let size = l.push(Instr::Extent(n));
        let sum = l.push(Instr::RowSum(x[0]));
        let mean = l.bin(Bin::Div, sum, size);
        let centred = l.bin(Bin::Sub, x[0], mean);
        let square = l.mul(centred, centred);
        let sum = l.push(Instr::RowSum(square));
        let variance = l.bin(Bin::Div, sum, size);
        let eps = l.constant(1e-5);
        let inside = l.bin(Bin::Add, variance, eps);
        let scale = l.un(Un::Rsqrt, inside);
        let normal = l.mul(centred, scale);
        let scaled = l.mul(normal, x[1]);
        l.bin(Bin::Add, scaled, x[2])
    })
}
