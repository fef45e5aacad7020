//! A few targets at a time.

use crate::error::{CudaBuilderError, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Applies a function to every item on a few threads; the successes come in the order of the items.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    apply: impl Fn(&T) -> Result<R> + Sync,
) -> (Vec<R>, Vec<CudaBuilderError>) {
    let queue = Mutex::new(items.iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..workers(items.len()) {
            scope.spawn(|| {
                while let Some((at, item)) = next(&queue) {
                    let result = apply(item);
                    lock(&done).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    let (mut built, mut failed) = (Vec::new(), Vec::new());
    for (_, result) in done {
        match result {
            Ok(value) => built.push(value),
            Err(error) => failed.push(error),
        }
    }
    (built, failed)
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
    use super::*;

    #[test]
    fn order_is_kept_and_every_failure_comes_back() {
        let odd = |n: &u32| if n % 2 == 1 { Ok(*n) } else { Err(CudaBuilderError::Differ(vec![n.to_string()])) };
        let (built, failed) = map(&[1, 2, 3, 4, 5, 6, 7], odd);
        assert_eq!(built, [1, 3, 5, 7]);
        assert_eq!(failed.len(), 3);
    }
}
