//! Prints how fast products run beside a direct call of the crate that multiplies, how fast matrix-vector products run
//! beside a loop that only reads, and what a product allocates. Build it optimised.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gemm_common::Parallelism;
use meganeura_host::level::Level;
use meganeura_host::{Layout, Memory, Source, Target, Task, Threads};
use meganeura_shaders::dim::Env;
use meganeura_shaders::kernel::{Contract, Kernel, Spec};
use meganeura_shaders::prog::DType;

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(block.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, at: *mut u8, block: Block) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, block) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A value in memory of the kind that models have, filled with numbers of both signs.
fn memory(elements: usize) -> Memory {
    let memory = Memory::new(4 * elements as u64).expect("memory");
    let mut state = elements as u32 | 1;
    memory.change(|words| {
        for word in words {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            *word = (state as f32 / u32::MAX as f32 - 0.5).to_bits();
        }
    });
    memory
}

/// The best of several runs in a row, as inside of one call.
fn best(threads: &Threads, runs: usize, mut run: impl FnMut() + Send) -> f64 {
    threads.call(|| {
        let mut least = f64::MAX;
        for _ in 0..runs {
            let start = Instant::now();
            run();
            least = least.min(start.elapsed().as_secs_f64());
        }
        least
    })
}

struct Product {
    task: Task,
    sides: [Memory; 2],
    sizes: [usize; 3],
    /// Elements from row to row and column to column of both sides.
    strides: [[usize; 2]; 2],
}

impl Product {
    fn new(text: &str, rows: usize, columns: usize, depth: usize) -> Product {
        let (first, second) = text.split_once("->").unwrap().0.split_once(',').unwrap();
        let size = |label: char| match label {
            'm' => rows,
            'n' => columns,
            _ => depth,
        };
        let layout = |labels: &str| Layout::dense(&labels.chars().map(size).collect::<Vec<_>>(), DType::F32);
        let layouts = [layout(first), layout(second)];
        let kernel = Kernel::Contract(Arc::new(Contract::plain(Spec::parse(text).unwrap())));
        let task = Task::new(&kernel, &layouts, &layout("mn"), &Env::default()).unwrap();
        let stride = |labels: &str, k: usize, label: char| {
            let at = labels.chars().position(|l| l == label);
            at.map_or(0, |at| layouts[k].strides[at])
        };
        let strides = [[('m', 0), ('k', 0)], [('k', 1), ('n', 1)]]
            .map(|side| side.map(|(label, k)| stride([first, second][k], k, label)));
        Product { task, sides: [rows * depth, depth * columns].map(memory), sizes: [rows, columns, depth], strides }
    }

    fn run(&self, [a, b]: [&[u32]; 2], c: &mut [u32], threads: &Threads) {
        self.task.run(threads, &[Source::new(a), Source::new(b)], Target::new(c), &mut []).unwrap();
    }

    /// One call of the crate, which wants the dense axis of the result for rows.
    fn direct(&self, [a, b]: [&[u32]; 2], c: &mut [u32], parallelism: Parallelism) {
        let [rows, columns, depth] = self.sizes;
        let [[a_row, a_column], [b_row, b_column]] = self.strides.map(|side| side.map(|stride| stride as isize));
        assert!(a.len() >= rows * depth && b.len() >= depth * columns && c.len() >= rows * columns);
        // SAFETY: the strides are those of dense matrices of these sizes.
        unsafe {
            gemm_f32::gemm::f32::get_gemm_fn()(
                columns,
                rows,
                depth,
                c.as_mut_ptr().cast(),
                columns as isize,
                1,
                false,
                b.as_ptr().cast(),
                b_row,
                b_column,
                a.as_ptr().cast(),
                a_row,
                a_column,
                0.0,
                1.0,
                false,
                false,
                false,
                parallelism,
            );
        }
    }
}

const SPECS: [&str; 3] = ["mk,kn->mn", "mk,nk->mn", "km,kn->mn"];

fn gflops(threads: &[Threads; 2]) {
    println!("GFLOP/s: ours on 1 and 2 threads; the crate alone on 1 and on 2 of its own; ours of its best");
    for spec in SPECS {
        for [rows, columns, depth] in [
            [512, 512, 512],
            [1024, 1024, 1024],
            [64, 128, 784],
            [128, 576, 576],
            [128, 1536, 576],
            [128, 576, 1536],
            [16, 1536, 576],
            [4, 1536, 576],
            [64, 10, 128],
            [3136, 64, 64],
        ] {
            let product = Product::new(spec, rows, columns, depth);
            let flops = 2.0 * (rows * columns * depth) as f64;
            let held = [product.sides[0].read(), product.sides[1].read()];
            let sides: [&[u32]; 2] = [&held[0], &held[1]];
            let mut c = vec![0u32; rows * columns];
            let mut times = [f64::MAX; 4];
            let runs = (2e8 / flops).clamp(1.0, 50.0) as usize;
            for _ in 0..8 {
                let turn = [
                    best(&threads[0], runs, || product.run(sides, &mut c, &threads[0])),
                    best(&threads[1], runs, || product.run(sides, &mut c, &threads[1])),
                    best(&threads[0], runs, || product.direct(sides, &mut c, Parallelism::None)),
                    best(&threads[1], runs, || product.direct(sides, &mut c, Parallelism::Rayon(2))),
                ];
                times.iter_mut().zip(turn).for_each(|(least, time)| *least = least.min(time));
            }
            let [one, two, alone, both] = times.map(|time| flops / time / 1e9);
            let [ratio, ratio_two] = [one / alone, two / both.max(alone)].map(|ratio| 100.0 * ratio);
            println!(
                "{spec} {rows:4}x{columns:4}x{depth:4}  {one:4.0} {two:4.0}   {alone:4.0} {both:4.0}   {ratio:4.0} % {ratio_two:4.0} %"
            );
        }
    }
}

/// Combines all words in lanes: what reading alone takes.
fn read(words: &[u32]) -> u32 {
    let mut lanes = [0u32; 64];
    for block in words.as_chunks::<64>().0 {
        for (lane, word) in lanes.iter_mut().zip(block) {
            *lane ^= *word;
        }
    }
    lanes.iter().fold(0, |all, lane| all ^ lane)
}

fn bandwidth(threads: &[Threads; 2]) {
    println!("GB/s of a matrix of 49152 x 576 times vectors: on 1 and 2 threads; reading it; of that");
    let (columns, depth) = (49152, 576);
    for spec in &SPECS[..2] {
        for rows in [1, 2, 4, 8] {
            let product = Product::new(spec, rows, columns, depth);
            let held = [product.sides[0].read(), product.sides[1].read()];
            let sides: [&[u32]; 2] = [&held[0], &held[1]];
            let pieces: Vec<&[u32]> = sides[1].chunks(sides[1].len() / 64).collect();
            let reading = |threads: &Threads| {
                threads.parts(pieces.len(), |k| {
                    black_box(read(pieces[k]));
                });
            };
            let mut c = vec![0u32; rows * columns];
            let mut times = [f64::MAX; 4];
            for _ in 0..10 {
                let turn = [
                    best(&threads[0], 2, || product.run(sides, &mut c, &threads[0])),
                    best(&threads[1], 2, || product.run(sides, &mut c, &threads[1])),
                    best(&threads[0], 2, || reading(&threads[0])),
                    best(&threads[1], 2, || reading(&threads[1])),
                ];
                times.iter_mut().zip(turn).for_each(|(least, time)| *least = least.min(time));
            }
            let [one, two, read_one, read_two] = times.map(|time| 4e-9 * (columns * depth) as f64 / time);
            let [ratio, ratio_two] = [one / read_one, two / read_two].map(|ratio| 100.0 * ratio);
            println!(
                "{spec} {rows} rows  {one:5.1} {two:5.1}   {read_one:5.1} {read_two:5.1}   {ratio:4.0} % {ratio_two:4.0} %"
            );
        }
    }
}

fn allocations(threads: &Threads) {
    println!("allocations of one run on one thread, and their bytes");
    for spec in SPECS {
        for [rows, columns, depth] in
            [[1, 1536, 576], [8, 1536, 576], [64, 1536, 576], [128, 1536, 576], [512, 512, 512]]
        {
            let product = Product::new(spec, rows, columns, depth);
            let held = [product.sides[0].read(), product.sides[1].read()];
            let mut c = vec![0u32; rows * columns];
            let mut run = || product.run([&held[0], &held[1]], &mut c, threads);
            run();
            let before = (CALLS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
            run();
            let (calls, bytes) = (CALLS.load(Ordering::Relaxed) - before.0, BYTES.load(Ordering::Relaxed) - before.1);
            println!("{spec} {rows:4}x{columns:4}x{depth:4}  {calls:3} {bytes:9}");
        }
    }
}

fn main() {
    println!("{}", Level::here());
    let threads = [Threads::new(1), Threads::new(2)];
    allocations(&threads[0]);
    gflops(&threads);
    bandwidth(&threads);
}
