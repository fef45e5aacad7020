//! A few targets at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Applies a function to every item on a few threads, told which thread it runs on; the results come in the order of the items.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], apply: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let queue = Mutex::new(items.iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        let (queue, done, apply) = (&queue, &done, &apply);
        for worker in 0..workers(items.len()) {
            scope.spawn(move || {
                while let Some((at, item)) = next(queue) {
                    let result = apply(worker, item);
                    lock(done).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Two compilers keep two cores busy; more than four would mostly need memory.
fn workers(items: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    items.min(cores).min(4)
}

/// A function of its own, so that the lock is not held while the item is worked on.
fn next<T>(queue: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    lock(queue).next()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_item_once_and_in_order() {
        let items: Vec<u64> = (0..100).collect();
        let slow_start = |n: &u64| std::thread::sleep(std::time::Duration::from_micros(200 - 2 * n));
        let results = super::map(&items, |_, n| {
            slow_start(n);
            n * n
        });
        assert_eq!(results, items.iter().map(|n| n * n).collect::<Vec<_>>());
    }
}
