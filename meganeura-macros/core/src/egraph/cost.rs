//! What a kernel costs, in picoseconds of a fixed reference device: integers, so that sums have one value and ties are
//! real ties.
//!
//! `launch + bytes / memory + re-read bytes / cache + flops / rate`; a view is free. Sizes are those of one
//! representative call, since one choice has to serve all.

use std::collections::BTreeSet;

use egg::Id;
use meganeura_shaders::dim::{Env, Shape, Symbols};
use meganeura_shaders::kernel::{Contract, Kernel};

use super::lang::{ENode, Eg, Op, split};

/// What a device can do.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Picoseconds for a launch.
    pub launch: u64,
    /// Memory.
    pub bytes_per_ns: u64,
    /// What was read before by the same kernel.
    pub cached_bytes_per_ns: u64,
    /// Arithmetic.
    pub flops_per_ns: u64,
    /// Rows and columns of a result computed together: what the sides of a product are re-read by.
    pub tile: i64,
}

/// The device that all choices are made for: those of others differ by a few per cent.
pub const REFERENCE: Device =
    Device { launch: 2_200_000, bytes_per_ns: 4_000, cached_bytes_per_ns: 16_000, flops_per_ns: 30_000, tile: 64 };

/// The size that choices are made at, where bounds allow it.
const REPRESENTATIVE: i64 = 128;

/// Every dimension at the representative size, or as near as its bounds and its step allow.
pub fn representative(symbols: &Symbols) -> Env {
    let clipped = |low: i64, high: i64, step: i64| {
        let size = REPRESENTATIVE.clamp(low, high);
        low + (size - low) / step * step
    };
    let sizes: Vec<i64> = symbols.declared().iter().map(|d| clipped(d.low, d.high, d.step)).collect();
    let env = symbols.bind(&sizes);
    assert!(env.is_ok(), "sizes within the bounds of their dimensions can be bound");
    env.unwrap_or_default()
}

#[derive(Default)]
struct Work {
    reads: BTreeSet<Id>,
    written: u64,
    cached: u64,
    flops: u64,
}

/// Costs at the sizes of one call.
#[derive(Clone, Copy, Debug)]
pub struct Cost<'a> {
    /// The device.
    pub device: Device,
    /// The sizes.
    pub at: &'a Env,
}

impl Cost<'_> {
    /// Picoseconds for a node.
    pub fn node(&self, eg: &Eg, node: &ENode) -> u64 {
        let mut work = Work::default();
        match &node.op {
            Op::Leaf(..) | Op::Reshape(_) | Op::Proj(_) | Op::Tuple => return 0,
            Op::Opaque(op, _) if op.is_view() => return 0,
            Op::Kernel(kernel) => self.add(eg, kernel, &node.args, &mut work),
            // Members of one launch share what they read from memory, not what their tiles compute.
            Op::Launch(kernels) => {
                split(kernels, &node.args).for_each(|(kernel, args)| self.add(eg, kernel, args, &mut work));
            }
            Op::Transpose(_) => {
                work.reads.extend(node.args.iter().copied());
                work.written = self.bytes(eg[node.args[0]].data.shape());
            }
            // Reads of each argument no more than it writes: a slice leaves most of its argument alone.
            Op::Opaque(_, ty) => {
                let written = self.bytes(&ty.shape);
                let read = |a: &Id| self.bytes(eg[*a].data.shape()).min(written);
                work.written = written + node.args.iter().map(read).sum::<u64>();
            }
        }
        let moved = work.written + work.reads.iter().map(|id| self.bytes(eg[*id].data.shape())).sum::<u64>();
        let per = |amount: u64, rate: u64| amount * 1000 / rate;
        let Device { launch, bytes_per_ns, cached_bytes_per_ns, flops_per_ns, .. } = self.device;
        launch + per(moved, bytes_per_ns) + per(work.cached, cached_bytes_per_ns) + per(work.flops, flops_per_ns)
    }

    fn bytes(&self, shape: &Shape) -> u64 {
        4 * elements(&self.at.shape(shape))
    }

    fn add(&self, eg: &Eg, kernel: &Kernel, args: &[Id], work: &mut Work) {
        let sizes: Vec<Vec<i64>> = args.iter().map(|a| self.at.shape(eg[*a].data.shape())).collect();
        let sizes: Vec<&Vec<i64>> = sizes.iter().collect();
        work.reads.extend(args.iter().map(|a| eg.find(*a)));
        work.written += 4 * match kernel {
            Kernel::Rows(p) => {
                work.flops += p.flops(&sizes);
                elements(&p.shape(&sizes).unwrap_or_default())
            }
            Kernel::ColumnSum(p) => {
                work.flops += p.flops(&sizes) + sizes.iter().map(|s| elements(s)).max().unwrap_or(0);
                p.shape(&sizes).and_then(|shape| shape.last().copied()).unwrap_or(0) as u64
            }
            Kernel::Contract(c) => self.add_contract(c, &sizes, args, work),
            // Chosen later, of what no rule knows.
            _ => sizes.iter().map(|s| elements(s)).sum(),
        };
    }

    /// Gives the number of results.
    fn add_contract(&self, c: &Contract, sizes: &[&Vec<i64>], args: &[Id], work: &mut Work) -> u64 {
        let Some(all) = c.shapes(sizes) else { return 0 };
        let ((terms, extras), (ids, _)) = (c.parts(sizes), c.parts(args));
        for (i, (term, (a, b))) in c.terms.iter().zip(terms).enumerate() {
            let Some(dims) = term.spec.dims(&all.a[i], &all.b[i]) else { return 0 };
            let tiles = |without: &[u8]| {
                let labels = term.spec.out.iter().filter(|l| !without.contains(l));
                let size = labels.map(|l| dims[usize::from(*l)]).product::<i64>();
                ((size + self.device.tile - 1) / self.device.tile).max(1) as u64
            };
            let (row_tiles, column_tiles) = (tiles(&term.spec.b), tiles(&term.spec.a));
            let side = |sizes: &[&Vec<i64>]| 4 * sizes.iter().map(|s| elements(s)).sum::<u64>();
            // Accumulators of one tile load and prepare their common rows once.
            let repeated = i > 0 && (&term.a, ids[i].0) == (&c.terms[0].a, ids[0].0);
            if !repeated {
                // A row reduction before the product is a pass of its own over the rows.
                work.cached += side(a) * if term.a.reduces_rows() { 2 * column_tiles - 1 } else { column_tiles - 1 };
                work.flops += column_tiles * (term.a.flops(a) + term.stat.as_ref().map_or(0, |s| s.flops(a)));
            }
            work.cached += side(b) * (row_tiles - 1);
            work.flops += row_tiles * term.b.flops(b) + 2 * elements(&dims);
        }
        let accumulators = vec![&all.acc; c.terms.len()];
        let inputs: Vec<&Vec<i64>> = accumulators.into_iter().chain(&all.stats).chain(extras.iter().copied()).collect();
        work.flops += c.epi.flops(&inputs);
        elements(&all.epi)
    }
}

fn elements(size: &[i64]) -> u64 {
    size.iter().map(|n| (*n).max(0)).product::<i64>() as u64
}
