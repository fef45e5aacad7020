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
    AwqFp8, Bf16, Broadcast, BroadcastFp8, Device, E4m3, Fp8, Matrix, Modulation, NoAffine, Nvfp4, PerToken,
    PerTokenTable, Sink, Sizes, bf16,
};
use cust::context::CurrentContext;
use cust::error::CudaResult;
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
    _bits16: Arena<u16>,
    _bits8: Arena<u8>,
    _floats: Arena<f32>,
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
        let all = || inputs.iter().chain(outputs);
        let room = |fits: fn(&Data) -> bool| {
            all().filter(|(_, tensor)| fits(&tensor.data)).map(|(_, tensor)| rounded(&tensor.data)).sum::<usize>()
                * copies
        };
        let (all_bits16, all_floats) =
            (room(|data| matches!(data, Data::Bf16(_))), room(|data| matches!(data, Data::F32(_))));
        let all_bits8 = room(|data| matches!(data, Data::E4m3(_) | Data::U8(_)));
        let mut bits16 = Arena::over(DeviceBuffer::zeroed(Arena::<u16>::elements(all_bits16)))?;
        let mut bits8 = Arena::over(DeviceBuffer::zeroed(Arena::<u8>::elements(all_bits8)))?;
        let mut floats = Arena::over(DeviceBuffer::zeroed(Arena::<f32>::elements(all_floats)))?;
        let mut made: Vec<Copy> = Vec::new();
        for _ in 0..copies {
            let mut copy = Copy::default();
            for (name, tensor) in all() {
                let first = made.first();
                let shared = is_shared(call, name);
                match &tensor.data {
                    Data::Bf16(data) => {
                        let bits = || data.iter().copied().map(bf16::to_bits).collect::<Vec<_>>();
                        place(&mut copy.bits16, &mut bits16, name, shared, first.map(|copy| &copy.bits16), bits)?;
                    }
                    Data::E4m3(data) => {
                        let bits = || data.iter().copied().map(E4m3::to_bits).collect::<Vec<_>>();
                        place(&mut copy.bits8, &mut bits8, name, shared, first.map(|copy| &copy.bits8), bits)?;
                    }
                    Data::U8(data) => {
                        place(&mut copy.bits8, &mut bits8, name, shared, first.map(|copy| &copy.bits8), || {
                            data.clone()
                        })?;
                    }
                    Data::F32(data) => {
                        place(&mut copy.floats, &mut floats, name, shared, first.map(|copy| &copy.floats), || {
                            data.clone()
                        })?;
                    }
                }
            }
            made.push(copy);
        }
        // The driver may still be copying out of its staging memory: nobody's time should have that in it.
        called("waiting for the operands", CurrentContext::synchronize())?;
        let sizes = call.sizes(inputs)?;
        Ok(Self { gpu, call: *call, sizes, copies: made, _bits16: bits16, _bits8: bits8, _floats: floats })
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
            match &mut tensor.data {
                Data::Bf16(data) => fetch(&copy.bits16[name], data, bf16::from_bits)?,
                Data::F32(data) => fetch(&copy.floats[name], data, |value| value)?,
                Data::E4m3(data) => fetch(&copy.bits8[name], data, E4m3::from_bits)?,
                Data::U8(data) => fetch(&copy.bits8[name], data, |byte| byte)?,
            }
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

/// Puts an operand where the first copy has it, if all share it, or into memory of its own.
fn place<T: DeviceCopy>(
    operands: &mut BTreeMap<String, DeviceSlice<T>>,
    arena: &mut Arena<T>,
    name: &str,
    shared: bool,
    first: Option<&BTreeMap<String, DeviceSlice<T>>>,
    data: impl FnOnce() -> Vec<T>,
) -> Outcome {
    let slice = match first.map(|first| first[name]) {
        Some(first) if shared => first,
        // Nothing to convert nor to bring over again.
        Some(first) => arena.place(first.len(), &first)?,
        None => {
            let data = data();
            arena.place(data.len(), &data[..])?
        }
    };
    operands.insert(name.to_owned(), slice);
    Ok(())
}

/// Bytes with what alignment adds.
fn rounded(data: &Data) -> usize {
    bytes(data).next_multiple_of(GRAIN)
}

/// Bytes of a tensor, which is in memory, so they can be counted.
fn bytes(data: &Data) -> usize {
    data.len() * data.dtype().bytes() as usize
}

/// Device memory that is handed out piece by piece.
struct Arena<T: DeviceCopy> {
    memory: DeviceBuffer<T>,
    /// Elements handed out, and skipped up to the first aligned address.
    used: usize,
}

impl<T: DeviceCopy> Arena<T> {
    /// Elements of memory that has room for `bytes`.
    const fn elements(bytes: usize) -> usize {
        (bytes + GRAIN) / size_of::<T>()
    }

    fn over(memory: CudaResult<DeviceBuffer<T>>) -> Outcome<Self> {
        let memory = called("allocating device memory", memory)?;
        let address = memory.as_device_ptr().as_raw();
        // Less than GRAIN.
        let skipped = (address.next_multiple_of(GRAIN as u64) - address) as usize;
        Ok(Self { memory, used: skipped / size_of::<T>() })
    }

    /// A copy of `length` elements, of the host or of the device.
    fn place<D: ?Sized>(&mut self, length: usize, data: &D) -> Outcome<DeviceSlice<T>>
    where
        DeviceSlice<T>: CopyDestination<D>,
    {
        let mut slice = self.memory.index(self.used..self.used + length);
        self.used += (length * size_of::<T>()).next_multiple_of(GRAIN) / size_of::<T>();
        called("copying to the device", slice.copy_from(data))?;
        Ok(slice)
    }
}

fn fetch<T: DeviceCopy + Default + std::marker::Copy, U>(
    device: &DeviceSlice<T>,
    host: &mut [U],
    value: impl Fn(T) -> U,
) -> Outcome {
    let bits = called("copying from the device", device.as_host_vec())?;
    for (host, bits) in host.iter_mut().zip(bits) {
        *host = value(bits);
    }
    Ok(())
}
