//! Operands of a call in device memory, in as many copies as a measurement rotates over.
//!
//! Every operand of every copy begins on a multiple of [`GRAIN`], where the copies that the times are held against are at their
//! best too.
use super::graph::Work;
use super::{Gpu, called};
use crate::failure::{Failure, Outcome};
use adaptive_layernorm_producers::named::{Call, Data, Tensors};
use adaptive_layernorm_producers::operator::{Axis, ModulationKind, SinkKind};
use adaptive_layernorm_producers::{
    AwqFp8, Bf16, Broadcast, BroadcastFp8, Device, Fp8, Matrix, Modulation, NoAffine, Nvfp4, PerToken, PerTokenTable,
    Sink, Sizes,
};
use bytemuck::{Zeroable, cast_slice, cast_slice_mut};
use cust::context::CurrentContext;
use cust::memory::{CopyDestination, DeviceBuffer, DeviceCopy, DeviceSlice};
use cust::stream::Stream;
use std::collections::BTreeMap;

/// Bytes that operands are aligned to.
pub const GRAIN: usize = 64 << 10;

/// The call with its operands.
pub struct Resident<'g> {
    gpu: &'g Gpu,
    call: Call,
    sizes: Sizes,
    copies: Vec<Copy>,
    // What the copies' slices point into.
    _arenas: Arenas,
}

/// One set of operands: bf16 as its bits, e4m3 and codes as bytes.
#[derive(Default)]
struct Copy {
    bits16: BTreeMap<String, DeviceSlice<u16>>,
    bits8: BTreeMap<String, DeviceSlice<u8>>,
    floats: BTreeMap<String, DeviceSlice<f32>>,
}

impl<'g> Resident<'g> {
    /// Uploads a set and repeats it on the device, `copies` sets in all; operands that all rows share are there once.
    pub fn new(gpu: &'g Gpu, call: &Call, inputs: &Tensors, outputs: &Tensors, copies: usize) -> Outcome<Self> {
        let mut arenas = Arenas::with_room(inputs, outputs, copies)?;
        let mut made: Vec<Copy> = Vec::new();
        for _ in 0..copies {
            let mut copy = Copy::default();
            for (name, tensor) in inputs {
                let role = if is_shared(call, name) { Role::Shared } else { Role::Own };
                copy.place(&mut arenas, made.first(), name, role, &tensor.data)?;
            }
            for (name, tensor) in outputs {
                copy.place(&mut arenas, made.first(), name, Role::Output, &tensor.data)?;
            }
            made.push(copy);
        }
        // The driver may still be copying out of its staging memory: nobody's time should have that in it.
        called("waiting for the operands", CurrentContext::synchronize())?;
        let sizes = call.sizes(inputs)?;
        Ok(Self { gpu, call: *call, sizes, copies: made, _arenas: arenas })
    }

    /// Bytes of one copy that no other copy shares.
    pub fn bytes_a_copy(call: &Call, inputs: &Tensors, outputs: &Tensors) -> usize {
        let own = inputs.iter().chain(outputs).filter(|(name, _)| !is_shared(call, name));
        own.map(|(_, tensor)| bytes(&tensor.data)).sum()
    }

    /// Brings the outputs of a copy back.
    pub fn download(&self, copy: usize, outputs: &mut Tensors) -> Outcome {
        let copy = &self.copies[copy];
        for (name, tensor) in outputs {
            let copied = match &mut tensor.data {
                Data::Bf16(data) => copy.bits16[name].copy_to(cast_slice_mut(data)),
                Data::E4m3(data) => copy.bits8[name].copy_to(cast_slice_mut(data)),
                Data::U8(data) => copy.bits8[name].copy_to(data),
                Data::F32(data) => copy.floats[name].copy_to(data),
            };
            called("copying from the device", copied)?;
        }
        Ok(())
    }
}

impl Work for Resident<'_> {
    fn enqueue(&self, stream: &Stream, index: usize) -> Outcome {
        let copy = &self.copies[index];
        if self.call.operator.sink() == SinkKind::SixBf16 {
            return copy.six_way(self.gpu, stream);
        }
        let Sizes { rows, dim, .. } = self.sizes;
        let x = Matrix::new(&copy.bits16["x"], rows as usize, dim as usize);
        let modulation = copy.modulation(&self.call);
        let mut outputs = copy.outputs();
        let sink = outputs.sink(copy, &self.call)?;
        Ok(self.gpu.producers().run(stream, x, modulation, self.call.eps, sink)?)
    }
}

impl Copy {
    /// Adds an operand.
    fn place(&mut self, arenas: &mut Arenas, first: Option<&Self>, name: &str, role: Role, data: &Data) -> Outcome {
        let own = name.to_owned();
        match data {
            Data::Bf16(data) => {
                let first = first.map(|first| first.bits16[name]);
                self.bits16.insert(own, arenas.bits16.place(role, first, cast_slice(data))?);
            }
            Data::E4m3(data) => {
                let first = first.map(|first| first.bits8[name]);
                self.bits8.insert(own, arenas.bits8.place(role, first, cast_slice(data))?);
            }
            Data::U8(data) => {
                let first = first.map(|first| first.bits8[name]);
                self.bits8.insert(own, arenas.bits8.place(role, first, data)?);
            }
            Data::F32(data) => {
                let first = first.map(|first| first.floats[name]);
                self.floats.insert(own, arenas.floats.place(role, first, data)?);
            }
        }
        Ok(())
    }

    fn modulation(&self, call: &Call) -> Modulation<'_, Device> {
        let &Call { shift_idx, scale_idx, .. } = call;
        match call.operator.modulation() {
            ModulationKind::None | ModulationKind::SixWay => NoAffine.into(),
            ModulationKind::Broadcast => {
                Broadcast { scale: &self.bits16["scale"], shift: &self.bits16["shift"] }.into()
            }
            ModulationKind::PerToken => PerToken { scale: &self.bits16["scale"], shift: &self.bits16["shift"] }.into(),
            ModulationKind::PerTokenTable => {
                PerTokenTable { temb: &self.bits16["temb"], table: &self.floats["table"], shift_idx, scale_idx }.into()
            }
            ModulationKind::BroadcastFp8 => BroadcastFp8 {
                scale: &self.bits8["scale_fp8"],
                shift: &self.bits8["shift_fp8"],
                scale_deq: &self.floats["scale_deq"],
                shift_deq: &self.floats["shift_deq"],
            }
            .into(),
        }
    }

    fn outputs(&self) -> Outputs {
        Outputs {
            bf16: self.bits16.get("out").copied(),
            fp8: self.bits8.get("out").copied(),
            packed: self.bits8.get("packed").copied(),
            scales: self.bits8.get("sf_swizzled").copied(),
        }
    }

    fn six_way(&self, gpu: &Gpu, stream: &Stream) -> Outcome {
        let (params, modulation) = (&self.floats["adaln_params"], &self.floats["layer_modulation"]);
        let mut out = ["out0", "out1", "out2", "out3", "out4", "out5"].map(|name| self.bits16[name]);
        Ok(gpu.producers().adaln_modulation6_bf16(stream, params, modulation, out.each_mut())?)
    }
}

/// What a row operator may write.
struct Outputs {
    bf16: Option<DeviceSlice<u16>>,
    fp8: Option<DeviceSlice<u8>>,
    packed: Option<DeviceSlice<u8>>,
    scales: Option<DeviceSlice<u8>>,
}

impl Outputs {
    fn sink<'a>(&'a mut self, copy: &'a Copy, call: &Call) -> Outcome<Sink<'a, Device>> {
        let act_scale = || &copy.floats["act_scale"];
        let sink = match (call.operator.sink(), call.recipe) {
            (SinkKind::Bf16, _) => self.bf16.as_mut().map(|out| Bf16 { out }.into()),
            (SinkKind::Fp8, _) => self.fp8.as_mut().map(|out| Fp8 { act_scale: act_scale(), out }.into()),
            (SinkKind::AwqFp8, _) => {
                self.fp8.as_mut().map(|out| AwqFp8 { inv_s: &copy.bits16["inv_s"], act_scale: act_scale(), out }.into())
            }
            (SinkKind::Nvfp4, Some(recipe)) => {
                let global_scale = copy.floats.get("global_scale");
                let both = self.packed.as_mut().zip(self.scales.as_mut());
                both.map(|(packed, sf_swizzled)| Nvfp4 { recipe, global_scale, packed, sf_swizzled }.into())
            }
            (SinkKind::Nvfp4, None) | (SinkKind::SixBf16, _) => None,
        };
        sink.ok_or_else(|| Failure::input(format!("{}: an output is missing", call.operator)))
    }
}

/// Whether an operand does not depend on the row.
fn is_shared(call: &Call, name: &str) -> bool {
    let by_row = |axis: &Axis| matches!(axis, Axis::Rows | Axis::ScaleLayout);
    call.operator.operand(name).is_some_and(|spec| !spec.shape.iter().any(by_row))
}

/// What the copies have of an operand.
#[derive(Clone, Copy)]
enum Role {
    /// The first copy's.
    Shared,
    /// An input each.
    Own,
    /// An output each, zero at first: what was not written is not taken for a result.
    Output,
}

/// Bytes of a tensor, which is in memory, so they can be counted.
fn bytes(data: &Data) -> usize {
    data.len() * data.dtype().bytes() as usize
}

/// Device memory for the operands of each type.
struct Arenas {
    bits16: Arena<u16>,
    bits8: Arena<u8>,
    floats: Arena<f32>,
}

impl Arenas {
    /// Room for so many copies.
    fn with_room(inputs: &Tensors, outputs: &Tensors, copies: usize) -> Outcome<Self> {
        let all = || inputs.values().chain(outputs.values()).map(|tensor| &tensor.data);
        let room = |fits: fn(&&Data) -> bool| {
            all().filter(fits).map(|data| bytes(data).next_multiple_of(GRAIN)).sum::<usize>() * copies
        };
        Ok(Self {
            bits16: Arena::zeroed(room(|data| matches!(data, Data::Bf16(_))))?,
            bits8: Arena::zeroed(room(|data| matches!(data, Data::E4m3(_) | Data::U8(_))))?,
            floats: Arena::zeroed(room(|data| matches!(data, Data::F32(_))))?,
        })
    }
}

/// Device memory that is handed out piece by piece.
struct Arena<T: DeviceCopy> {
    memory: DeviceBuffer<T>,
    /// Elements handed out, and skipped up to the first aligned address.
    used: usize,
}

impl<T: DeviceCopy + Zeroable> Arena<T> {
    /// Room for `bytes` of aligned operands.
    fn zeroed(bytes: usize) -> Outcome<Self> {
        let memory = called("allocating device memory", DeviceBuffer::zeroed((bytes + GRAIN) / size_of::<T>()))?;
        let address = memory.as_device_ptr().as_raw();
        // Less than GRAIN.
        let skipped = (address.next_multiple_of(GRAIN as u64) - address) as usize;
        Ok(Self { memory, used: skipped / size_of::<T>() })
    }

    /// The first copy's memory for an operand, or more of the arena with what its role puts there.
    fn place(&mut self, role: Role, first: Option<DeviceSlice<T>>, data: &[T]) -> Outcome<DeviceSlice<T>> {
        if let (Role::Shared, Some(first)) = (role, first) {
            return Ok(first);
        }
        let mut slice = self.memory.index(self.used..self.used + data.len());
        self.used += size_of_val(data).next_multiple_of(GRAIN) / size_of::<T>();
        let copied = match (role, first) {
            (Role::Output, _) => Ok(()),
            // Nothing to bring over again.
            (_, Some(first)) => slice.copy_from(&first),
            (_, None) => slice.copy_from(data),
        };
        called("copying to the device", copied)?;
        Ok(slice)
    }
}
