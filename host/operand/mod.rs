//! Typed operands: one set for host slices and for device memory.
//!
//! [`Space`] says where an operand lives: [`Host`] operands are slices, [`Device`] operands are [`DeviceView`]s. [`Matrix`] is
//! the input; the modulations and the sinks are named as in the kernels and in contract.md. They hold whatever can be viewed as
//! an operand ([`Input`], [`Output`]); [`Modulation`] and [`Sink`] hold the views.
#[cfg(feature = "cudarc")]
mod cudarc;
mod device;
mod modulation;
mod sink;
mod space;

#[cfg(feature = "cudarc")]
pub use cudarc::{Lent, LentMut, lend, lend_mut};
pub use device::{Device, DeviceView, DeviceViewMut};
pub use modulation::{Broadcast, BroadcastFp8, Matrix, Modulation, NoAffine, PerToken, PerTokenTable, SixWay};
pub use sink::{Absent, AwqFp8, Bf16, Fp8, Nvfp4, OptionalInput, Sink};
pub use space::{Extent, Host, Input, Mut, Output, Ref, Space, View};
