//! Running an entry.
//!
//! Reading order: `launch` (what the caller says), `grid` (blocks, in parallel where they may), `block` (threads of a block and
//! their turns), `step` (one thread until it waits), `access` (loads and stores), `copy` (asynchronous copies), `barrier` and `warp` (where threads meet).

mod access;
mod barrier;
mod block;
mod copy;
pub(crate) mod geometry;
mod grid;
mod launch;
mod registers;
mod report;
mod schedule;
mod step;
mod thread;
mod warp;

pub use geometry::Dim3;
pub use launch::{Argument, Launch};
pub use report::Report;
pub use schedule::Schedule;
