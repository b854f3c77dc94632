//! Random well-shaped graphs with loops in them, over the dimensions `rows` (1..=70) and `count` (1..=6).

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::kernel::Spec;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::DType;

use super::{frozen, next_random, result, trained};
use crate::ir::{Graph, Type, ValueId};
use crate::ops::composite;
use crate::ops::{Contract, Op, Pad, Slice, Sum};

const WIDTHS: [i64; 2] = [3, 5];
const CLASSES: i64 = 5;

/// A graph and its loss, which is its first result.
pub fn random_graph(seed: u64) -> (Graph, ValueId) {
    build(seed, false)
}

/// The same without kinks and jumps, so that difference quotients are close to slopes.
pub fn random_smooth_graph(seed: u64) -> (Graph, ValueId) {
    build(seed, true)
}

fn build(seed: u64, smooth: bool) -> (Graph, ValueId) {
    let mut symbols = Symbols::default();
    let (rows, count) = (symbols.declare("rows", 1, 70, 1), symbols.declare("count", 1, 6, 1));
    let mut random = Generator { g: Graph::new(symbols), state: seed, rows, count, names: 0, smooth };
    let given = random.g.argument(0, "given", Type::float(vec![random.rows.clone(), 2.into()]));
    let table = random.tensor(&[], &[2.into(), 3.into()]);
    let start = contract(&mut random.g, "mk,kn->mn", given, table);
    let mut pool = vec![start];
    random.body(&mut pool, &[], 5);
    let logits = random.of_width(&pool, CLASSES, &[]);
    let labels = random.g.argument(1, "labels", Type { shape: vec![random.rows.clone()], dtype: DType::U32 });
    if let Some(store) = random.g.stores.last_mut() {
        store.below = Some(CLASSES.into());
    }
    let loss = composite::cross_entropy(&mut random.g, logits, labels);
    let mut loss = scale(&mut random.g, loss, 1.7);
    for value in &pool {
        // The loss need not know of everything, but of a tensor.
        if *value != start && random.below(4) == 0 {
            continue;
        }
        let sum = random.g.sum_all(*value);
        let sum = scale(&mut random.g, sum, 0.13);
        loss = random.g.add(loss, sum);
    }
    result(&mut random.g, "loss", loss);
    if random.below(2) == 0 {
        let last = random.of_width(&[start], 3, &[]);
        result(&mut random.g, "also", last);
        result(&mut random.g, "start", start);
    }
    (random.g, loss)
}

fn contract(g: &mut Graph, spec: &str, a: ValueId, b: ValueId) -> ValueId {
    let spec = Spec::parse(spec).unwrap();
    g.emit(Op::Contract(Contract { spec }), &[a, b])
}

fn scale(g: &mut Graph, x: ValueId, by: f64) -> ValueId {
    g.with_const(Bin::Mul, x, by)
}

struct Generator {
    g: Graph,
    state: u64,
    rows: Dim,
    count: Dim,
    names: usize,
    smooth: bool,
}

impl Generator {
    fn below(&mut self, limit: usize) -> usize {
        (next_random(&mut self.state) >> 20) as usize % limit
    }

    fn pick(&mut self, pool: &[ValueId]) -> ValueId {
        pool[self.below(pool.len())]
    }

    fn width(&self, value: ValueId) -> i64 {
        self.g.shape(value)[1].constant().unwrap()
    }

    fn tensor(&mut self, each: &[Dim], shape: &[Dim]) -> ValueId {
        self.names += 1;
        let name = format!("p{}", self.names);
        let make = if self.names > 1 && self.below(5) == 0 { frozen } else { trained };
        make(&mut self.g, &name, each, shape)
    }

    /// A weight: one of the loop's own if there is one of the shape, sometimes captured from outside.
    fn weight(&mut self, own: &[ValueId], shape: &[i64]) -> ValueId {
        let shape: Vec<Dim> = shape.iter().map(|size| Dim::from(*size)).collect();
        let fitting: Vec<ValueId> = own.iter().copied().filter(|v| *self.g.shape(*v) == shape).collect();
        if !fitting.is_empty() && self.below(4) > 0 {
            return self.pick(&fitting);
        }
        let open = std::mem::take(&mut self.g.open);
        let weight = self.tensor(&[], &shape);
        self.g.open = open;
        weight
    }

    fn of_width(&mut self, pool: &[ValueId], width: i64, own: &[ValueId]) -> ValueId {
        let value = self.pick(pool);
        if self.width(value) == width {
            return value;
        }
        let weight = self.weight(own, &[width, self.width(value)]);
        contract(&mut self.g, "mk,nk->mn", value, weight)
    }

    fn body(&mut self, pool: &mut Vec<ValueId>, own: &[ValueId], size: usize) {
        for _ in 0..1 + self.below(size) {
            let value = self.value(pool, own);
            pool.push(value);
        }
    }

    fn value(&mut self, pool: &mut Vec<ValueId>, own: &[ValueId]) -> ValueId {
        let x = self.pick(pool);
        match self.below(20) {
            0 | 1 => self.activation(x),
            2 => {
                let y = self.of_width(pool, self.width(x), own);
                let product = self.g.mul(x, y);
                scale(&mut self.g, product, 0.3)
            }
            3 => {
                let y = self.of_width(pool, self.width(x), own);
                self.g.sub(x, y)
            }
            4 => {
                let to = WIDTHS[self.below(2)];
                let weight = self.weight(own, &[self.width(x), to]);
                contract(&mut self.g, "mk,kn->mn", x, weight)
            }
            5..=7 => self.product(x),
            8 | 9 => self.normal(x, own),
            10 | 11 => self.moved(x),
            12 => self.reduced(x),
            13 if !self.smooth => {
                let y = self.of_width(pool, self.width(x), own);
                let less = self.g.bin(Bin::Lt, x, y);
                let max = self.g.row_max(x);
                let shifted = self.g.add(y, max);
                let shifted = scale(&mut self.g, shifted, 0.5);
                self.g.select(less, x, shifted)
            }
            _ if self.g.open.len() < 2 => self.repeat(pool, own),
            _ => {
                let y = self.of_width(pool, self.width(x), own);
                self.g.add(x, y)
            }
        }
    }

    fn activation(&mut self, x: ValueId) -> ValueId {
        match self.below(8) {
            0 => composite::silu(&mut self.g, x),
            1 => composite::gelu(&mut self.g, x),
            2 => composite::gelu_tanh(&mut self.g, x),
            3 if !self.smooth => composite::leaky_relu(&mut self.g, x, 0.1),
            4 if !self.smooth => self.g.un(Un::Relu, x),
            5 => self.g.un(Un::Softplus, x),
            6 => self.g.un(Un::Sin, x),
            _ => self.g.un(Un::Tanh, x),
        }
    }

    /// Products of a value with itself, over rows, over columns, and as in attention.
    fn product(&mut self, x: ValueId) -> ValueId {
        let g = &mut self.g;
        match next_random(&mut self.state) >> 20 & 3 {
            0 => {
                let gram = contract(g, "km,kn->mn", x, x);
                let spec = if self.names.is_multiple_of(2) { "mk,nk->mn" } else { "mk,kn->mn" };
                let y = contract(g, spec, x, gram);
                scale(g, y, 0.02)
            }
            1 => {
                let scores = contract(g, "mk,nk->mn", x, x);
                let p = composite::softmax(g, scores);
                contract(g, "mk,kn->mn", p, x)
            }
            2 => {
                let squares = contract(g, "mk,mk->m", x, x);
                let column = g.reshape(squares, vec![self.rows.clone(), 1.into()]);
                let factor = g.un(Un::Tanh, column);
                g.mul(x, factor)
            }
            _ => {
                // Columns as a batch axis of outer products.
                let outer = contract(g, "mk,nk->kmn", x, x);
                let y = contract(g, "kmn,nk->mk", outer, x);
                scale(g, y, 0.02)
            }
        }
    }

    fn normal(&mut self, x: ValueId, own: &[ValueId]) -> ValueId {
        let width = self.width(x);
        let normal = match self.below(4) {
            0 => composite::layer_norm(&mut self.g, x, 1e-3),
            1 => composite::rms_norm(&mut self.g, x, 1e-3),
            2 => composite::softmax(&mut self.g, x),
            _ => composite::log_softmax(&mut self.g, x),
        };
        let weight = self.weight(own, &[1, width]);
        let weight = self.g.reshape(weight, vec![Dim::from(width)]);
        self.g.mul(normal, weight)
    }

    /// Through another shape, another order of axes, or a part and zeros.
    fn moved(&mut self, x: ValueId) -> ValueId {
        let (width, rows) = (self.width(x), self.rows.clone());
        let which = self.below(4);
        let g = &mut self.g;
        match which {
            0 => {
                let flat = g.reshape(x, vec![&rows * &Dim::from(width)]);
                let flat = g.un(Un::Tanh, flat);
                g.reshape(flat, vec![rows, width.into()])
            }
            1 => {
                let turned = g.transpose(x, &[1, 0]);
                let p = composite::softmax(g, turned);
                let p = g.transpose(p, &[1, 0]);
                g.mul(p, x)
            }
            2 => {
                // The last row in place of all.
                let from = &rows - &Dim::from(1);
                let row = g.emit(Op::Slice(Slice { axis: 0, from, to: rows.clone() }), &[x]);
                g.broadcast(row, &vec![rows, width.into()])
            }
            _ => {
                let part = g.emit(Op::Slice(Slice { axis: 1, from: 1.into(), to: width.into() }), &[x]);
                g.emit(Op::Pad(Pad { axis: 1, before: 0.into(), total: width.into() }), &[part])
            }
        }
    }

    /// Less a statistic of the columns or rows.
    fn reduced(&mut self, x: ValueId) -> ValueId {
        let which = self.below(3);
        let g = &mut self.g;
        let statistic = match which {
            0 => composite::mean(g, x, &[0]),
            1 => composite::var(g, x, &[0], 0),
            _ => composite::logsumexp(g, x),
        };
        g.sub(x, statistic)
    }

    fn repeat(&mut self, pool: &mut Vec<ValueId>, own: &[ValueId]) -> ValueId {
        let count = [1.into(), 2.into(), 3.into(), self.count.clone()][self.below(4)].clone();
        let reversed = self.below(3) == 0;
        let mut carried: Vec<ValueId> = (0..self.below(4)).map(|_| self.pick(pool)).collect();
        if carried.is_empty() && self.below(2) == 0 {
            carried = vec![self.g.fill(0.5, &vec![self.rows.clone(), 3.into()])];
        }
        let stacked = self.stacked(&count, own);
        let widths: Vec<i64> = carried.iter().map(|v| self.width(*v)).collect();
        let outer = pool.clone();
        let index = self.g.open_repeat(count.clone(), reversed);
        let args: Vec<ValueId> = carried.iter().map(|v| self.g.carry(*v)).collect();
        let rows: Vec<ValueId> = stacked.iter().map(|v| self.g.stack_in(*v)).collect();
        let mut inner = args.clone();
        // Rows of an earlier stack are values like others.
        inner.extend(rows.iter().copied().filter(|v| self.g.shape(*v).first() == Some(&self.rows)));
        let shape = vec![self.rows.clone(), Dim::from(3)];
        inner.push(self.g.fill(0.25, &shape));
        if self.below(2) == 0 {
            let index = self.g.cast(DType::F32, index);
            let index = scale(&mut self.g, index, 0.2);
            inner.push(self.g.broadcast(index, &shape));
        }
        if self.below(2) == 0 {
            // A value of the outer block comes in as a capture.
            inner.push(scale(&mut self.g, outer[outer.len() - 1], 0.9));
        }
        self.body(&mut inner, &rows, 4);
        let next: Vec<ValueId> = widths.iter().map(|width| self.of_width(&inner, *width, &rows)).collect();
        let stacks: Vec<ValueId> = (0..self.below(3)).map(|_| self.pick(&inner)).collect();
        let outputs = self.g.close_repeat(&next, &stacks);
        let (finals, stacks) = outputs.split_at(next.len());
        pool.extend(finals);
        // A stack is summed over its rows, and sometimes walked over by one more loop.
        for stack in stacks {
            let source = if self.below(2) == 0 {
                self.g
                    .repeat(&count, !reversed, &[], &[*stack], |g, _, _, rows| (vec![], vec![g.un(Un::Tanh, rows[0])]))
                    [0]
            } else {
                *stack
            };
            let sum = self.g.emit(Op::Sum(Sum { axes: vec![0] }), &[source]);
            let shape = self.g.shape(sum)[1..].to_vec();
            pool.push(self.g.reshape(sum, shape));
        }
        self.pick(pool)
    }

    /// Tensors for each iteration: of all loops around if they are made at the root, by way of the outer rows.
    fn stacked(&mut self, count: &Dim, own: &[ValueId]) -> Vec<ValueId> {
        let mut stacked = vec![];
        let is_outermost = self.g.open.is_empty();
        if is_outermost && count.constant().is_some() {
            for shape in [[3, 3], [5, 3], [1, 3]] {
                if self.below(2) == 0 {
                    stacked.push(self.tensor(std::slice::from_ref(count), &shape.map(Dim::from)));
                }
            }
        }
        let fits = |v: &&ValueId| self.g.shape(**v).len() == 3 && self.g.shape(**v)[0] == *count;
        stacked.extend(own.iter().filter(fits).copied().collect::<Vec<_>>());
        if is_outermost && count.constant().is_some() && self.below(2) == 0 {
            let (inner, three) = (Dim::from(2), Dim::from(3));
            stacked.push(self.tensor(std::slice::from_ref(count), &[inner.clone(), three.clone(), three.clone()]));
            stacked.push(self.tensor(&[count.clone(), inner], &[three.clone(), three]));
        }
        stacked
    }
}
