//! Graphs as a user would spell them.

use meganeura_shaders::dim::{Dim, Shape};
use meganeura_shaders::kernel::Spec;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::Role;

use super::symbols;
use crate::ir::{Graph, Output, Type, ValueId};
use crate::ops::{self, Op, composite};

/// A graph over the dimension m, with everything that a model has.
pub(super) struct Model {
    pub(super) g: Graph,
    pub(super) m: Dim,
    arguments: usize,
    tensors: usize,
}

pub(super) fn dims(sizes: &[i64]) -> Shape {
    sizes.iter().map(|n| Dim::from(*n)).collect()
}

impl Model {
    pub(super) fn new() -> Model {
        let (symbols, m) = symbols();
        Model { g: Graph::new(symbols), m, arguments: 0, tensors: 0 }
    }

    pub(super) fn rows(&self, n: i64) -> Shape {
        vec![self.m.clone(), n.into()]
    }

    pub(super) fn argument(&mut self, shape: Shape, dtype: DType) -> ValueId {
        self.arguments += 1;
        self.g.argument(self.arguments - 1, &format!("x{}", self.arguments - 1), Type { shape, dtype })
    }

    pub(super) fn input(&mut self, shape: Shape) -> ValueId {
        self.argument(shape, DType::F32)
    }

    pub(super) fn tensor(&mut self, sizes: &[i64]) -> ValueId {
        self.tensors += 1;
        self.g.tensor(self.tensors - 1, &format!("w{}", self.tensors - 1), dims(sizes), 0, true)
    }

    /// A tensor with a row for each iteration.
    pub(super) fn array(&mut self, sizes: &[i64]) -> ValueId {
        self.tensors += 1;
        self.g.tensor(self.tensors - 1, &format!("w{}", self.tensors - 1), dims(sizes), 1, true)
    }

    pub(super) fn result(&mut self, value: ValueId) {
        let name = format!("y{}", self.g.outputs.len());
        self.g.output(Output { role: Role::Result(self.g.outputs.len()), name, value, loops: 0 });
    }
}

/// A model with the results that `body` gives.
pub(super) fn model(body: impl FnOnce(&mut Model) -> Vec<ValueId>) -> Graph {
    let mut model = Model::new();
    let results = body(&mut model);
    results.into_iter().for_each(|value| model.result(value));
    model.g
}

pub(super) fn einsum(g: &mut Graph, spec: &str, a: ValueId, b: ValueId) -> ValueId {
    g.emit(Op::Contract(ops::Contract { spec: Spec::parse(spec).unwrap() }), &[a, b])
}

pub(super) fn matmul(g: &mut Graph, x: ValueId, y: ValueId) -> ValueId {
    let spec = if g.shape(x).len() == 3 { "hmk,hkn->hmn" } else { "mk,kn->mn" };
    einsum(g, spec, x, y)
}

/// A linear layer: the weight is stored `[out, in]`.
pub(super) fn linear(g: &mut Graph, x: ValueId, w: ValueId) -> ValueId {
    let w = g.transpose(w, &[1, 0]);
    matmul(g, x, w)
}

/// `relu(x W₁ᵀ + b₁) W₂ᵀ + b₂`.
pub(super) fn mlp(dim: i64, hidden: i64, out: i64) -> Graph {
    model(|f| {
        let shape = f.rows(dim);
        let x = f.input(shape);
        let (w1, b1, w2, b2) =
            (f.tensor(&[hidden, dim]), f.tensor(&[hidden]), f.tensor(&[out, hidden]), f.tensor(&[out]));
        let g = &mut f.g;
        let y = linear(g, x, w1);
        let y = g.add(y, b1);
        let y = g.un(Un::Relu, y);
        let y = linear(g, y, w2);
        vec![g.add(y, b2)]
    })
}

#[derive(Clone, Copy)]
pub(super) struct Decoder {
    pub(super) dim: i64,
    pub(super) heads: i64,
    pub(super) kv_heads: i64,
    pub(super) head: i64,
    pub(super) ffn: i64,
}

pub(super) const SMOLLM2: Decoder = Decoder { dim: 576, heads: 9, kv_heads: 3, head: 64, ffn: 1536 };
pub(super) const TINY: Decoder = Decoder { dim: 8, heads: 4, kv_heads: 2, head: 4, ffn: 6 };

/// The tensors of a decoder layer.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub(super) g1: ValueId,
    pub(super) wq: ValueId,
    pub(super) wk: ValueId,
    pub(super) wv: ValueId,
    pub(super) wo: ValueId,
    pub(super) g2: ValueId,
    pub(super) wg: ValueId,
    pub(super) wu: ValueId,
    pub(super) wd: ValueId,
}

/// Their shapes, in order.
pub(super) fn weight_shapes(c: Decoder) -> [Vec<i64>; 9] {
    let (q, kv) = (c.heads * c.head, c.kv_heads * c.head);
    [
        vec![c.dim],
        vec![q, c.dim],
        vec![kv, c.dim],
        vec![kv, c.dim],
        vec![c.dim, q],
        vec![c.dim],
        vec![c.ffn, c.dim],
        vec![c.ffn, c.dim],
        vec![c.dim, c.ffn],
    ]
}

pub(super) fn weights([g1, wq, wk, wv, wo, g2, wg, wu, wd]: [ValueId; 9]) -> Weights {
    Weights { g1, wq, wk, wv, wo, g2, wg, wu, wd }
}

fn gained_norm(g: &mut Graph, x: ValueId, gain: ValueId) -> ValueId {
    let n = composite::rms_norm(g, x, 1e-5);
    g.mul(n, gain)
}

/// One layer of a decoder without positions and without a cache.
pub(super) fn decoder_block(g: &mut Graph, m: &Dim, c: Decoder, x: ValueId, mask: ValueId, w: Weights) -> ValueId {
    let n = gained_norm(g, x, w.g1);
    let [q, k, v] = [(w.wq, c.heads), (w.wk, c.kv_heads), (w.wv, c.kv_heads)].map(|(w, h)| {
        let y = linear(g, n, w);
        g.reshape(y, vec![m.clone(), h.into(), c.head.into()])
    });
    let groups = vec![m.clone(), c.kv_heads.into(), (c.heads / c.kv_heads).into(), c.head.into()];
    let grouped = g.reshape(q, groups);
    let scores = einsum(g, "mkgd,nkd->kgmn", grouped, k);
    let scaled = g.with_const(Bin::Mul, scores, 1.0 / (c.head as f64).sqrt());
    let masked = g.add(scaled, mask);
    let p = composite::softmax(g, masked);
    let a = einsum(g, "kgmn,nkd->mkgd", p, v);
    let a = g.reshape(a, vec![m.clone(), (c.heads * c.head).into()]);
    let o = linear(g, a, w.wo);
    let x = g.add(x, o);
    let n = gained_norm(g, x, w.g2);
    let (gate, up) = (linear(g, n, w.wg), linear(g, n, w.wu));
    let gate = composite::silu(g, gate);
    let h = g.mul(gate, up);
    let d = linear(g, h, w.wd);
    g.add(x, d)
}

pub(super) fn decoder_layer(c: Decoder) -> Graph {
    model(|f| {
        let (shape, square) = (f.rows(c.dim), vec![f.m.clone(), f.m.clone()]);
        let (x, mask) = (f.input(shape), f.input(square));
        let w = weights(weight_shapes(c).map(|shape| f.tensor(&shape)));
        let m = f.m.clone();
        vec![decoder_block(&mut f.g, &m, c, x, mask, w)]
    })
}

/// `layers` of them in a loop.
pub(super) fn decoder(c: Decoder, layers: i64) -> Graph {
    model(|f| {
        let (shape, square) = (f.rows(c.dim), vec![f.m.clone(), f.m.clone()]);
        let (x, mask) = (f.input(shape), f.input(square));
        let arrays = weight_shapes(c).map(|shape| f.array(&[&[layers], &shape[..]].concat()));
        let m = f.m.clone();
        f.g.repeat(&layers.into(), false, &[x], &arrays, |g, _, x, rows| {
            let rows: [ValueId; 9] = rows.try_into().unwrap();
            (vec![decoder_block(g, &m, c, x[0], mask, weights(rows))], vec![])
        })
    })
}

/// Scores for all rows.
pub(super) fn all_logits(dim: i64, vocab: i64) -> Graph {
    model(|f| {
        let shape = f.rows(dim);
        let x = f.input(shape);
        let (gain, embed) = (f.tensor(&[dim]), f.tensor(&[vocab, dim]));
        let n = gained_norm(&mut f.g, x, gain);
        vec![linear(&mut f.g, n, embed)]
    })
}

/// Mean cross-entropy of logits and its gradient.
pub(super) fn cross_entropy(classes: i64) -> Graph {
    model(|f| {
        let shape = f.rows(16);
        let h = f.input(shape);
        let w = f.tensor(&[classes, 16]);
        let labels = vec![f.m.clone()];
        let labels = f.argument(labels, DType::U32);
        let m = f.m.clone();
        let g = &mut f.g;
        let logits = linear(g, h, w);
        let loss = composite::cross_entropy(g, logits, labels);
        // The derivative as the composite states it, over its own maximum and sum.
        let max = g.row_max(logits);
        let shifted = g.sub(logits, max);
        let exp = g.un(Un::Exp, shifted);
        let sum = g.row_sum(exp);
        let p = g.div(exp, sum);
        let column = g.index(0, logits);
        let label = g.reshape(labels, vec![m.clone(), 1.into()]);
        let hit = g.bin(Bin::Eq, column, label);
        let (one, zero) = (g.constant(1.0), g.constant(0.0));
        let hot = g.select(hit, one, zero);
        let wrong = g.sub(p, hot);
        let count = g.size(&m);
        let d = g.div(wrong, count);
        let dw = einsum(g, "mo,mk->ok", d, h);
        let dh = einsum(g, "mo,ok->mk", d, w);
        vec![loss, dw, dh]
    })
}

/// `relu(norm(x) W1ᵀ + b1) W2ᵀ` and the gradients of everything, from the gradient of the result.
pub(super) fn mlp_backward(dim: i64, hidden: i64, out: i64) -> Graph {
    model(|f| {
        let (rows, seeds) = (f.rows(dim), f.rows(out));
        let (x, dy) = (f.input(rows), f.input(seeds));
        let (gain, w1, b1, w2) =
            (f.tensor(&[dim]), f.tensor(&[hidden, dim]), f.tensor(&[hidden]), f.tensor(&[out, hidden]));
        let g = &mut f.g;
        let square = g.mul(x, x);
        let sum = g.row_sum(square);
        let mean = g.with_const(Bin::Mul, sum, 1.0 / dim as f64);
        let shifted = g.with_const(Bin::Add, mean, 1e-5);
        let r = g.un(Un::Rsqrt, shifted);
        let xr = g.mul(x, r);
        let n = g.mul(xr, gain);
        let z = linear(g, n, w1);
        let z = g.add(z, b1);
        let h = g.un(Un::Relu, z);
        let y = linear(g, h, w2);

        let dw2 = einsum(g, "mo,mf->of", dy, h);
        let dh = matmul(g, dy, w2);
        let zero = g.constant(0.0);
        let on = g.bin(Bin::Lt, zero, h);
        let dz = g.select(on, dh, zero);
        let db1 = g.sum_to(dz, &dims(&[hidden]));
        let dw1 = einsum(g, "mf,md->fd", dz, n);
        let dn = matmul(g, dz, w1);
        let weighted = g.mul(dn, xr);
        let dgain = g.sum_to(weighted, &dims(&[dim]));
        // dx = r·(dn·g) − xr·r·mean(dn·g·xr)
        let dxr = g.mul(dn, gain);
        let direct = g.mul(dxr, r);
        let along = g.mul(dxr, xr);
        let along = g.row_sum(along);
        let along = g.with_const(Bin::Mul, along, 1.0 / dim as f64);
        let back = g.mul(xr, r);
        let back = g.mul(back, along);
        let dx = g.sub(direct, back);
        vec![y, dw1, db1, dw2, dgain, dx]
    })
}

/// A gate that is not pointwise and a result too: `x V + softmax(x W)`.
pub(super) fn softmax_gate(dim: i64, out: i64) -> Graph {
    model(|f| {
        let shape = f.rows(dim);
        let x = f.input(shape);
        let (v, w) = (f.tensor(&[out, dim]), f.tensor(&[out, dim]));
        let g = &mut f.g;
        let (value, gate) = (linear(g, x, v), linear(g, x, w));
        let gate = composite::softmax(g, gate);
        let y = g.add(value, gate);
        vec![y, gate]
    })
}

/// `Σ relu(xᵢ)` where every `relu(xᵢ)` is a result too: each is read or repeated, 2ⁿ ways to write the sum.
pub(super) fn wide(n: usize) -> Graph {
    model(|f| {
        let parts: Vec<ValueId> = (0..n)
            .map(|_| {
                let shape = f.rows(64);
                let x = f.input(shape);
                f.g.un(Un::Relu, x)
            })
            .collect();
        let sum = parts.iter().skip(1).fold(parts[0], |sum, p| f.g.add(sum, *p));
        [&parts[..], &[sum]].concat()
    })
}

/// The mean of squares of the first result, as the one result.
pub(super) fn with_loss(mut graph: Graph) -> Graph {
    let y = graph.outputs[0].value;
    let square = graph.mul(y, y);
    let axes: Vec<u8> = (0..graph.shape(y).len() as u8).collect();
    let mean = composite::mean(&mut graph, square, &axes);
    let loss = graph.reshape(mean, vec![]);
    graph.outputs = vec![Output { role: Role::Result(0), name: "loss".into(), value: loss, loops: 0 }];
    graph
}
