//! Where operands live.
use crate::convert::to_u64;
use crate::element::{DType, Element};
use std::fmt::Debug;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Host {}
    impl Sealed for crate::operand::Device {}
}

/// Host memory or device memory: which view types operands are made of.
pub trait Space: sealed::Sealed + Copy + Debug + 'static {
    /// An input.
    type Ref<'a, T: Element>: View + Copy + Debug;
    /// An output.
    type Mut<'a, T: Element>: View + Debug;
}

/// An input of element type `T` in space `S`.
pub type Ref<'a, T, S> = <S as Space>::Ref<'a, T>;
/// An output of element type `T` in space `S`.
pub type Mut<'a, T, S> = <S as Space>::Mut<'a, T>;

/// Host memory: operands are slices.
#[derive(Clone, Copy, Debug)]
pub enum Host {}

impl Space for Host {
    type Ref<'a, T: Element> = &'a [T];
    type Mut<'a, T: Element> = &'a mut [T];
}

/// What the checks see of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Element type.
    pub dtype: DType,
    /// Address of the first element.
    pub address: u64,
    /// Elements.
    pub len: usize,
}

/// A contiguous run of elements.
pub trait View {
    /// Address and length.
    fn extent(&self) -> Extent;
}

/// What can be handed in as an input of element type `T` in space `S`: a slice, a reference to a `Vec` or an array in host memory;
/// a [`DeviceView`](crate::DeviceView), with the feature `cuda` a reference to a `cust` buffer, with `cudarc` one to what `lend` gives, in
/// device memory.
pub trait Input<'a, T: Element, S: Space> {
    /// The view that is checked and read.
    fn view(self) -> Ref<'a, T, S>;
}

/// What can be handed in as an output of element type `T` in space `S`: the mutable counterparts of [`Input`].
pub trait Output<'a, T: Element, S: Space> {
    /// The view that is checked and written.
    fn view(self) -> Mut<'a, T, S>;
}

macro_rules! host_operands {
    ($([$($parameter:tt)*] $container:ty),*) => {
        $(
            impl<'a, T: Element $($parameter)*> Input<'a, T, Host> for &'a $container {
                fn view(self) -> &'a [T] {
                    self
                }
            }

            impl<'a, T: Element $($parameter)*> Output<'a, T, Host> for &'a mut $container {
                fn view(self) -> &'a mut [T] {
                    self
                }
            }
        )*
    };
}

host_operands!([] [T], [] Vec<T>, [, const N: usize] [T; N]);

impl<T: Element> View for &[T] {
    fn extent(&self) -> Extent {
        Extent { dtype: T::DTYPE, address: to_u64(self.as_ptr().addr()), len: self.len() }
    }
}

impl<T: Element> View for &mut [T] {
    fn extent(&self) -> Extent {
        Extent { dtype: T::DTYPE, address: to_u64(self.as_ptr().addr()), len: self.len() }
    }
}
