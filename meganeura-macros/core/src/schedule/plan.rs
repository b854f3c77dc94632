//! The memory plan: which arena buffers may share bytes, fixed for all values of the dimensions.
//!
//! Two buffers that live at the same time are put in order, one below the other; an offset is the largest end of what
//! lies below. That is all there is to a plan: any packing of fixed sizes is such an order read at its sizes, and an
//! order keeps apart what must be apart at *every* size. What the sizes decide is only how high the arena gets. So
//! packings are made at sample sizes, the few orders that together stay nearest to the load are kept, and whoever
//! knows the sizes takes the lowest.
//!
//! Lifetimes count epochs (stretches between barriers), since steps of one epoch run at once. A buffer that a loop
//! does not own lives through all of a loop that touches it. Where a body starts without a barrier, its last and first
//! epoch run at once, too (`seams`).

use std::collections::{BTreeMap, BTreeSet};

use meganeura_shaders::arena::{pile, sizes};
use meganeura_shaders::schedule::{After, BufferId, BufferKind, Item, Life, LoopId, Order, Place, Schedule};

use super::hazards::first_step;

/// How many orders a plan keeps.
pub const ORDERS: usize = 4;

/// Lives and orders of the arena buffers that the steps touch.
pub fn plan_memory(items: &[Item], schedule: &Schedule) -> (Vec<Life>, Vec<Order>) {
    let (lives, seams) = lifetimes(items, schedule);
    let sample = |env| sizes(&schedule.buffers, &lives, env);
    let samples: Vec<Vec<i64>> = schedule.symbols.samples().iter().map(sample).collect();
    let orders = choose(&lives, &conflicts(&lives, &seams), &samples, ORDERS);
    (lives, orders)
}

/// Orders that together waste least: each is the packing of one sample in one rank; the next one taken is that which
/// lowers the sum of the heights, relative to the load, most.
pub fn choose(lives: &[Life], conflicts: &Conflicts, samples: &[Vec<i64>], count: usize) -> Vec<Order> {
    let loads: Vec<i64> = samples.iter().map(|sizes| load(lives, sizes).max(1)).collect();
    let mut candidates: Vec<(Order, Vec<f64>)> = Vec::new();
    for sizes in samples {
        for rank in RANKS {
            let order = orient(&first_fit(lives, conflicts, sizes, rank), conflicts);
            let wastes =
                samples.iter().zip(&loads).map(|(sizes, load)| pile(&order, sizes, i64::MAX).1 as f64 / *load as f64);
            let wastes = wastes.collect();
            candidates.push((order, wastes));
        }
    }
    let mut least = vec![f64::MAX / samples.len() as f64; samples.len()];
    let mut orders = Vec::new();
    while orders.len() < count {
        let total = |wastes: &[f64]| wastes.iter().zip(&least).map(|(a, b)| a.min(*b)).sum::<f64>();
        let by_total = |(_, a): &&(Order, Vec<f64>), (_, b): &&(Order, Vec<f64>)| total(a).total_cmp(&total(b));
        let Some((order, wastes)) = candidates.iter().min_by(by_total) else { break };
        if total(wastes) >= least.iter().sum() {
            break;
        }
        orders.push(order.clone());
        least = wastes.iter().zip(&least).map(|(a, b)| a.min(*b)).collect();
    }
    orders.iter_mut().for_each(reduce);
    orders
}

/// Who is placed first: the large, the large and long-lived, the long-lived.
pub const RANKS: [fn(&Life, i64) -> i64; 3] = [
    |_, bytes| -bytes,
    |life, bytes| -bytes.saturating_mul((life.last - life.first + 1) as i64),
    |life, _| life.first as i64 - life.last as i64,
];

/// For each life, those that must not share a byte with it.
pub type Conflicts = Vec<Vec<usize>>;

/// Offsets of a packing at fixed sizes: each buffer as low as those placed before it allow.
pub fn first_fit(lives: &[Life], conflicts: &Conflicts, sizes: &[i64], rank: fn(&Life, i64) -> i64) -> Vec<i64> {
    let mut queue: Vec<usize> = (0..lives.len()).collect();
    queue.sort_by_key(|k| (rank(&lives[*k], sizes[*k]), *k));
    let mut offsets: Vec<Option<i64>> = vec![None; lives.len()];
    for life in queue {
        let placed = conflicts[life].iter().filter_map(|k| offsets[*k].map(|at| (at, at + sizes[*k])));
        let mut taken: Vec<(i64, i64)> = placed.collect();
        taken.sort_unstable();
        let mut lowest = 0;
        for (start, end) in taken {
            if lowest + sizes[life] <= start {
                break;
            }
            lowest = lowest.max(end);
        }
        offsets[life] = Some(lowest);
    }
    offsets.into_iter().flatten().collect()
}

/// Keeps of a packing only who lies above whom. Every pair that conflicts is ordered, also where a size is 0 at the
/// sample and both start at one offset.
fn orient(offsets: &[i64], conflicts: &Conflicts) -> Order {
    let mut order: Vec<usize> = (0..offsets.len()).collect();
    order.sort_by_key(|k| (offsets[*k], *k));
    let is_below = |b: usize, k: usize| (offsets[b], b) < (offsets[k], k);
    let below = |k: usize| conflicts[k].iter().copied().filter(|b| is_below(*b, k)).collect();
    order.into_iter().map(|k| (k, below(k))).collect()
}

/// Drops what follows from the rest: who lies below one that lies below.
fn reduce(order: &mut Order) {
    let all: BTreeMap<usize, Vec<usize>> = order.iter().cloned().collect();
    for (_, below) in order {
        let implied: BTreeSet<usize> = below.iter().flat_map(|b| &all[b]).copied().collect();
        below.retain(|b| !implied.contains(b));
    }
}

/// The bytes that live at once, at most: no plan needs less.
pub fn load(lives: &[Life], sizes: &[i64]) -> i64 {
    let epochs = lives.iter().map(|life| life.last + 1).max().unwrap_or(0);
    let mut change = vec![0i64; epochs + 1];
    for (life, size) in lives.iter().zip(sizes) {
        change[life.first] += size;
        change[life.last + 1] -= size;
    }
    let running = |sum: &mut i64, change: &i64| {
        *sum += change;
        Some(*sum)
    };
    change.iter().scan(0, running).max().unwrap_or(0)
}

/// Whose lives meet: their epochs overlap, or one holds a body's head and the other its tail at a seam.
pub fn conflicts(lives: &[Life], seams: &[(usize, usize)]) -> Conflicts {
    let holds = |life: &Life, epoch: usize| life.first <= epoch && epoch <= life.last;
    let meet = |a: &Life, b: &Life| {
        let at_seam =
            |(head, tail): &(usize, usize)| holds(a, *head) && holds(b, *tail) || holds(a, *tail) && holds(b, *head);
        a.first <= b.last && b.first <= a.last || seams.iter().any(at_seam)
    };
    let of = |k: usize| (0..lives.len()).filter(|other| *other != k && meet(&lives[k], &lives[*other])).collect();
    (0..lives.len()).map(of).collect()
}

/// Lives of the arena buffers, and the (first, last) epochs of bodies that start without a barrier.
pub fn lifetimes(items: &[Item], schedule: &Schedule) -> (Vec<Life>, Vec<(usize, usize)>) {
    let mut walk = Walk::default();
    walk.items(items);
    let mut lives: BTreeMap<BufferId, Life> = BTreeMap::new();
    for Touch { buffer, epoch, step, path } in walk.touches {
        let BufferKind::Arena { owner } = schedule.buffers[buffer].kind else { continue };
        let (first, last, end) = match path.get(schedule.depth(owner)) {
            Some(inner) => (walk.spans[inner].0, walk.spans[inner].1, After::Loop(*inner)),
            None => (epoch, epoch, After::Step(step)),
        };
        // Touches come in order.
        let life = lives.entry(buffer).or_insert(Life { buffer, first, last, end });
        (life.last, life.end) = (last, end);
    }
    (lives.into_values().collect(), walk.seams)
}

struct Touch {
    buffer: BufferId,
    epoch: usize,
    step: usize,
    path: Vec<LoopId>,
}

#[derive(Default)]
struct Walk {
    epoch: usize,
    step: usize,
    path: Vec<LoopId>,
    spans: BTreeMap<LoopId, (usize, usize)>,
    touches: Vec<Touch>,
    seams: Vec<(usize, usize)>,
}

impl Walk {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Step(step) => {
                    self.epoch += usize::from(step.barrier);
                    let (epoch, number) = (self.epoch, self.step);
                    let touch =
                        |place: &Place| Touch { buffer: place.buffer, epoch, step: number, path: self.path.clone() };
                    self.touches.extend(step.places().map(touch));
                    self.step += 1;
                }
                Item::Loop { id, body } => {
                    let starts_with_barrier = first_step(body).is_some_and(|step| step.barrier);
                    let head = self.epoch + usize::from(starts_with_barrier);
                    self.path.push(*id);
                    self.items(body);
                    self.path.pop();
                    self.spans.insert(*id, (head, self.epoch));
                    if !starts_with_barrier {
                        self.seams.push((head, self.epoch));
                    }
                }
            }
        }
    }
}
