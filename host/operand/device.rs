//! Operands in device memory.
//!
//! A view is an address and a length. It comes from a `cust` buffer (feature `cuda`), from `cudarc` memory (feature `cudarc`), or from
//! the raw pointer of any other CUDA stack by [`DeviceView::from_raw_parts`]; no bytes move. What can be checked without touching the memory is checked before each launch.
use super::space::{Extent, Input, Output, Space, View};
use crate::element::Element;
use std::marker::PhantomData;

/// Device memory: operands are [`DeviceView`]s and [`DeviceViewMut`]s.
#[derive(Clone, Copy, Debug)]
pub enum Device {}

impl Space for Device {
    type Ref<'a, T: Element> = DeviceView<'a, T>;
    type Mut<'a, T: Element> = DeviceViewMut<'a, T>;
}

/// Device memory that a launch reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceView<'a, T> {
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) memory: PhantomData<&'a [T]>,
}

/// Device memory that a launch writes.
#[derive(Debug, PartialEq, Eq)]
pub struct DeviceViewMut<'a, T> {
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) memory: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element> DeviceView<'a, T> {
    /// `len` elements at the device address `pointer`.
    ///
    /// # Safety
    /// Until every launch that got the view has finished on its stream: the `len` elements lie in one allocation that kernels of the
    /// launching context can read, they have been written, and nothing else writes them.
    #[expect(unsafe_code, reason = "the caller vouches for the memory")]
    pub const unsafe fn from_raw_parts(pointer: u64, len: usize) -> Self {
        Self { address: pointer, len, memory: PhantomData }
    }
}

impl<'a, T: Element> DeviceViewMut<'a, T> {
    /// `len` elements at the device address `pointer`.
    ///
    /// # Safety
    /// Until every launch that got the view has finished on its stream: the `len` elements lie in one allocation that kernels of the
    /// launching context can write, and nothing else reads or writes them.
    #[expect(unsafe_code, reason = "the caller vouches for the memory")]
    pub const unsafe fn from_raw_parts(pointer: u64, len: usize) -> Self {
        Self { address: pointer, len, memory: PhantomData }
    }

    /// The same view for one call, so that the original can be used again after it.
    pub const fn reborrow(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut { address: self.address, len: self.len, memory: PhantomData }
    }
}

impl<T: Element> View for DeviceView<'_, T> {
    fn extent(&self) -> Extent {
        Extent { dtype: T::DTYPE, address: self.address, len: self.len }
    }
}

impl<T: Element> View for DeviceViewMut<'_, T> {
    fn extent(&self) -> Extent {
        Extent { dtype: T::DTYPE, address: self.address, len: self.len }
    }
}

impl<'a, T: Element> Input<'a, T, Device> for DeviceView<'a, T> {
    fn view(self) -> Self {
        self
    }
}

impl<'a, T: Element> Output<'a, T, Device> for DeviceViewMut<'a, T> {
    fn view(self) -> Self {
        self
    }
}

/// Views of `cust` memory. bf16 and e4m3 travel as `u16` and `u8`, their bits.
#[cfg(feature = "cuda")]
mod of_cust {
    use super::{Device, DeviceView, DeviceViewMut, Input, Output};
    use crate::formats::E4m3;
    use cust::memory::{DeviceBuffer, DeviceSlice};
    use half::bf16;
    use std::marker::PhantomData;

    macro_rules! views {
        ($($element:ty: $container:ident<$stored:ty>),*) => {
            $(
                impl<'a> From<&'a $container<$stored>> for DeviceView<'a, $element> {
                    fn from(memory: &'a $container<$stored>) -> Self {
                        Self { address: memory.as_device_ptr().as_raw(), len: memory.len(), memory: PhantomData }
                    }
                }

                impl<'a> From<&'a mut $container<$stored>> for DeviceViewMut<'a, $element> {
                    fn from(memory: &'a mut $container<$stored>) -> Self {
                        Self { address: memory.as_device_ptr().as_raw(), len: memory.len(), memory: PhantomData }
                    }
                }

                impl<'a> Input<'a, $element, Device> for &'a $container<$stored> {
                    fn view(self) -> DeviceView<'a, $element> {
                        self.into()
                    }
                }

                impl<'a> Output<'a, $element, Device> for &'a mut $container<$stored> {
                    fn view(self) -> DeviceViewMut<'a, $element> {
                        self.into()
                    }
                }
            )*
        };
    }

    views!(bf16: DeviceBuffer<u16>, f32: DeviceBuffer<f32>, E4m3: DeviceBuffer<u8>, u8: DeviceBuffer<u8>);
    views!(bf16: DeviceSlice<u16>, f32: DeviceSlice<f32>, E4m3: DeviceSlice<u8>, u8: DeviceSlice<u8>);
}
