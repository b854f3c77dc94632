//! The calls of a device with the times of their steps, while they are measured.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::device::Times;
use crate::replay::Steps;

/// Launches that are kept one by one; of those before them only sums are.
const LAUNCHES: usize = 1 << 20;

/// What is measured on a device.
pub(super) struct Recording {
    began: Instant,
    /// Whether calls of several threads run at once. If not, one queue runs them all.
    lanes: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: VecDeque<Recorded>,
    /// Their launches.
    launches: usize,
    summed: Vec<Summed>,
    /// The threads that calls came from.
    threads: Vec<ThreadId>,
}

/// A call.
pub(super) struct Recorded {
    pub(super) steps: Arc<Steps>,
    /// When it was handed to the device, since that was opened.
    pub(super) begin: Duration,
    /// What is done on one lane is done one after the other.
    pub(super) lane: usize,
    pub(super) times: Arc<Times>,
}

/// Calls that are no longer kept one by one.
pub(super) struct Summed {
    pub(super) steps: Arc<Steps>,
    pub(super) calls: u64,
    /// For each launch how often it ran, and how long in all; the update stands behind them.
    pub(super) launches: Vec<(u64, Duration)>,
}

/// What was recorded.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) summed: Vec<Summed>,
    pub(super) calls: Vec<Recorded>,
}

impl Recording {
    pub(super) fn new(lanes: bool) -> Recording {
        Recording { began: Instant::now(), lanes, state: Mutex::default() }
    }

    /// A call begins; its times go to what this gives.
    pub(super) fn begin(&self, steps: &Arc<Steps>) -> Arc<Times> {
        let count = steps.launched.len() + 1;
        let (times, begin) = (Arc::new(Times::new(count)), self.began.elapsed());
        let mut state = self.lock();
        let lane = if self.lanes { state.lane() } else { 0 };
        state.launches += count;
        state.calls.push_back(Recorded { steps: steps.clone(), begin, lane, times: times.clone() });
        state.shorten(LAUNCHES);
        times
    }

    /// All of it, and a new beginning.
    pub(super) fn take(&self) -> Taken {
        let mut state = self.lock();
        state.launches = 0;
        Taken { summed: std::mem::take(&mut state.summed), calls: std::mem::take(&mut state.calls).into() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The number of this thread among those that called.
    fn lane(&mut self) -> usize {
        let own = std::thread::current().id();
        self.threads.iter().position(|known| *known == own).unwrap_or_else(|| {
            self.threads.push(own);
            self.threads.len() - 1
        })
    }

    /// Sums up the oldest calls beyond this many launches, as far as the device is done with them.
    fn shorten(&mut self, most: usize) {
        while self.launches > most
            && self.calls.front().is_some_and(|call| Arc::strong_count(&call.times) == 1)
            && let Some(call) = self.calls.pop_front()
        {
            self.launches -= call.steps.launched.len() + 1;
            let at = self.summed.iter().position(|sum| Arc::ptr_eq(&sum.steps, &call.steps));
            let at = at.unwrap_or_else(|| {
                self.summed.push(Summed::of(&call.steps));
                self.summed.len() - 1
            });
            self.summed[at].add(&call.times);
        }
    }
}

impl Summed {
    /// No calls yet.
    pub(super) fn of(steps: &Arc<Steps>) -> Summed {
        let launches = vec![(0, Duration::ZERO); steps.launched.len() + 1];
        Summed { steps: steps.clone(), calls: 0, launches }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, times: &Times) {
        self.calls += 1;
        for ((count, sum), time) in self.launches.iter_mut().zip(times.told()) {
            *count += u64::from(time.is_some());
            *sum += time.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_longer_kept_is_in_the_sums() {
        let steps = Arc::new(Steps::named("Net", "run", &["contract", "rows"]));
        let recording = Recording::new(true);
        for call in 1..=5 {
            let times = recording.begin(&steps);
            times.add(0, Duration::from_nanos(10 * call));
            times.add(2, Duration::from_nanos(call));
            drop(times);
            recording.lock().shorten(7);
        }
        let Taken { summed, calls } = recording.take();
        // Two calls of two steps and an update are kept.
        assert_eq!((calls.len(), summed.len()), (2, 1));
        assert_eq!(summed[0].calls, 3);
        let nanoseconds: Vec<(u64, u128)> =
            summed[0].launches.iter().map(|(count, sum)| (*count, sum.as_nanos())).collect();
        assert_eq!(nanoseconds, [(3, 60), (0, 0), (3, 6)]);
        let kept = calls.iter().map(|call| call.times.told()[0].map(|time| time.as_nanos()));
        assert_eq!(kept.collect::<Vec<_>>(), [Some(40), Some(50)]);
        let again = recording.take();
        assert!(again.calls.is_empty() && again.summed.is_empty());
    }

    #[test]
    fn a_call_in_flight_is_kept() {
        let steps = Arc::new(Steps::named("Net", "run", &["contract"]));
        let recording = Recording::new(true);
        let in_flight = recording.begin(&steps);
        drop(recording.begin(&steps));
        recording.lock().shorten(1);
        in_flight.add(0, Duration::from_nanos(3));
        let taken = recording.take();
        assert_eq!(taken.calls.len(), 2);
        assert_eq!(taken.calls[0].times.told()[0], Some(Duration::from_nanos(3)));
    }
}
