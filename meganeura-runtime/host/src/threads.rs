//! Threads of the host device. A launch has parts, fixed by its shapes and never by the number of threads, so results
//! are the same bits on any number of them.

use std::cell::RefCell;

use rayon::prelude::*;

/// The threads of a device.
pub struct Threads {
    pool: Option<rayon::ThreadPool>,
    count: usize,
}

impl Threads {
    /// This many; one means the calling thread. Where the system gives no threads, it is the calling one.
    pub fn new(count: usize) -> Threads {
        let build =
            || rayon::ThreadPoolBuilder::new().num_threads(count).thread_name(|k| format!("meganeura-{k}")).build();
        let pool = if count > 1 { build().ok() } else { None };
        let count = if pool.is_some() { count } else { 1 };
        Threads { pool, count }
    }

    /// How many work.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Runs a whole call, so that its launches find the other threads awake.
    pub fn call<R: Send>(&self, call: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(call),
            None => call(),
        }
    }

    /// Runs all parts of a launch, in any order, and returns when they are done.
    pub fn parts(&self, parts: usize, part: impl Fn(usize) + Sync) {
        if parts <= 1 || self.pool.is_none() || rayon::current_thread_index().is_none() {
            return (0..parts).for_each(&part);
        }
        (0..parts).into_par_iter().with_max_len(1).for_each(&part);
    }
}

thread_local! {
    static LANE: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Lends a thread's own scratch words to a part of a launch; they hold whatever was left there. Not to be nested.
pub fn lane<R>(words: usize, run: impl FnOnce(&mut [f32]) -> R) -> R {
    LANE.with_borrow_mut(|lane| {
        let lines = words.div_ceil(16) * 8 + 8;
        if lane.len() < lines {
            lane.resize(lines, 0);
        }
        let floats: &mut [f32] = bytemuck::cast_slice_mut(lane.as_mut_slice());
        let skip = floats.as_ptr().align_offset(64).min(16);
        run(&mut floats[skip..skip + words])
    })
}
