//! Operands in `cudarc` memory.
//!
//! A `CudaSlice` carries two events, by which `cudarc` orders work of several streams: a read waits for the last write, a write for the
//! last read and write. So a launch borrows memory for a stream: [`lend`] and [`lend_mut`] make the stream wait for what comes before,
//! and what they give records the launch when it is dropped, which has to be after the launch.
use super::device::{Device, DeviceView, DeviceViewMut};
use super::space::{Input, Output};
use crate::formats::E4m3;
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop};
use half::bf16;
use std::marker::PhantomData;

/// `cudarc` memory as an input of launches on one stream.
#[derive(Debug)]
#[must_use = "a launch takes it by reference"]
pub struct Lent<'a, T> {
    address: u64,
    len: usize,
    memory: PhantomData<&'a [T]>,
    _recorded_on_drop: SyncOnDrop<'a>,
}

/// `cudarc` memory as an output of launches on one stream.
#[derive(Debug)]
#[must_use = "a launch takes it by reference"]
pub struct LentMut<'a, T> {
    address: u64,
    len: usize,
    memory: PhantomData<&'a mut [T]>,
    _recorded_on_drop: SyncOnDrop<'a>,
}

/// Lends a `CudaSlice`, `CudaView` or `CudaViewMut` to launches on `stream` as an input: bf16 as `bf16` or as `u16`, its bits; e4m3 as `u8`,
/// its bits; f32 and u8 as themselves.
///
/// Drop it after the launch. Dropped earlier, or launched on another stream, the launch is not ordered against work on other streams.
pub fn lend<'a, T>(memory: &'a impl DevicePtr<T>, stream: &'a CudaStream) -> Lent<'a, T> {
    let len = memory.len();
    let (address, recorded) = memory.device_ptr(stream);
    Lent { address, len, memory: PhantomData, _recorded_on_drop: recorded }
}

/// Lends a `CudaSlice` or `CudaViewMut` to launches on `stream` as an output; as [`lend`].
pub fn lend_mut<'a, T>(memory: &'a mut impl DevicePtrMut<T>, stream: &'a CudaStream) -> LentMut<'a, T> {
    let len = memory.len();
    let (address, recorded) = memory.device_ptr_mut(stream);
    LentMut { address, len, memory: PhantomData, _recorded_on_drop: recorded }
}

/// Element types that `cudarc` memory of one type can hold.
macro_rules! views {
    ($($element:ty: $stored:ty),*) => {
        $(
            impl<'a> Input<'a, $element, Device> for &'a Lent<'_, $stored> {
                fn view(self) -> DeviceView<'a, $element> {
                    DeviceView { address: self.address, len: self.len, memory: PhantomData }
                }
            }

            impl<'a> Output<'a, $element, Device> for &'a mut LentMut<'_, $stored> {
                fn view(self) -> DeviceViewMut<'a, $element> {
                    DeviceViewMut { address: self.address, len: self.len, memory: PhantomData }
                }
            }
        )*
    };
}

views!(bf16: bf16, bf16: u16, f32: f32, E4m3: u8, u8: u8);
