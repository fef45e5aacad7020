//! Operands in host memory, run on the GPU: for tests and tools, not for speed.
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::formats::E4m3;
use crate::operand::{
    AwqFp8, Bf16, Broadcast, BroadcastFp8, Device, Fp8, Matrix, Modulation, NoAffine, Nvfp4, PerToken, PerTokenTable,
    Sink, SixWay,
};
use crate::producers::Producers;
use cust::error::CudaResult;
use cust::memory::{CopyDestination, DeviceBuffer, DeviceCopy};
use cust::stream::{Stream, StreamFlags};
use half::bf16;

/// A [`Backend`] that copies the operands to the GPU, launches, waits, and copies the outputs back.
///
/// Outputs travel both ways, so bytes that a kernel leaves alone keep their values.
#[derive(Debug)]
pub struct Staged<'p> {
    producers: &'p Producers,
    stream: Stream,
}

impl<'p> Staged<'p> {
    /// A backend on a stream of its own in the current context.
    ///
    /// The stream is one that waits for the default stream, where the copies of the operands go: such a copy may return before its bytes
    /// have arrived.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn new(producers: &'p Producers) -> Result<Self> {
        let stream = Stream::new(StreamFlags::DEFAULT, None).map_err(|error| Error::driver("cuStreamCreate", error))?;
        Ok(Self { producers, stream })
    }

    /// Launches, waits, and copies back.
    fn rows(
        &self,
        x: Matrix<&DeviceBuffer<u16>>,
        modulation: Modulation<'_, Device>,
        eps: f32,
        sink: Sink<'_>,
    ) -> Result<()> {
        match sink {
            Sink::Bf16(sink) => {
                let mut out = upload_bf16(sink.out)?;
                self.launch(x, modulation, eps, Bf16 { out: &mut out }.into())?;
                download(&out, sink.out, bf16::from_bits)
            }
            Sink::Fp8(sink) => {
                let (act_scale, mut out) = (upload(sink.act_scale)?, upload_e4m3(sink.out)?);
                self.launch(x, modulation, eps, Fp8 { act_scale: &act_scale, out: &mut out }.into())?;
                download(&out, sink.out, E4m3::from_bits)
            }
            Sink::AwqFp8(sink) => {
                let (inv_s, act_scale, mut out) =
                    (upload_bf16(sink.inv_s)?, upload(sink.act_scale)?, upload_e4m3(sink.out)?);
                let on_device = AwqFp8 { inv_s: &inv_s, act_scale: &act_scale, out: &mut out };
                self.launch(x, modulation, eps, on_device.into())?;
                download(&out, sink.out, E4m3::from_bits)
            }
            Sink::Nvfp4(sink) => {
                let global_scale = sink.global_scale.map(upload).transpose()?;
                let (mut packed, mut sf_swizzled) = (upload(sink.packed)?, upload(sink.sf_swizzled)?);
                let on_device = Nvfp4 {
                    recipe: sink.recipe,
                    global_scale: global_scale.as_ref(),
                    packed: &mut packed,
                    sf_swizzled: &mut sf_swizzled,
                };
                self.launch(x, modulation, eps, on_device.into())?;
                download(&packed, sink.packed, |byte| byte)?;
                download(&sf_swizzled, sink.sf_swizzled, |byte| byte)
            }
        }
    }

    fn launch(
        &self,
        x: Matrix<&DeviceBuffer<u16>>,
        modulation: Modulation<'_, Device>,
        eps: f32,
        sink: Sink<'_, Device>,
    ) -> Result<()> {
        self.producers.run(&self.stream, x, modulation, eps, sink)?;
        self.wait()
    }

    fn wait(&self) -> Result<()> {
        called("cuStreamSynchronize", self.stream.synchronize())
    }
}

impl Backend for Staged<'_> {
    fn run(&self, x: Matrix<&[bf16]>, modulation: Modulation<'_>, eps: f32, sink: Sink<'_>) -> Result<()> {
        let data = upload_bf16(x.data)?;
        let x = Matrix::new(&data, x.rows, x.dim);
        match modulation {
            Modulation::NoAffine(NoAffine) => self.rows(x, NoAffine.into(), eps, sink),
            Modulation::Broadcast(m) => {
                let (scale, shift) = (upload_bf16(m.scale)?, upload_bf16(m.shift)?);
                self.rows(x, Broadcast { scale: &scale, shift: &shift }.into(), eps, sink)
            }
            Modulation::PerToken(m) => {
                let (scale, shift) = (upload_bf16(m.scale)?, upload_bf16(m.shift)?);
                self.rows(x, PerToken { scale: &scale, shift: &shift }.into(), eps, sink)
            }
            Modulation::PerTokenTable(PerTokenTable { temb, table, shift_idx, scale_idx }) => {
                let (temb, table) = (upload_bf16(temb)?, upload(table)?);
                self.rows(x, PerTokenTable { temb: &temb, table: &table, shift_idx, scale_idx }.into(), eps, sink)
            }
            Modulation::BroadcastFp8(m) => {
                let (scale, shift) = (upload_e4m3(m.scale)?, upload_e4m3(m.shift)?);
                let (scale_deq, shift_deq) = (upload(m.scale_deq)?, upload(m.shift_deq)?);
                let on_device =
                    BroadcastFp8 { scale: &scale, shift: &shift, scale_deq: &scale_deq, shift_deq: &shift_deq };
                self.rows(x, on_device.into(), eps, sink)
            }
        }
    }

    fn run_six_way(&self, parts: SixWay<'_>) -> Result<()> {
        let (params, modulation) = (upload(parts.adaln_params)?, upload(parts.layer_modulation)?);
        let mut on_device = parts.out.each_ref().iter().map(|out| upload_bf16(out)).collect::<Result<Vec<_>>>()?;
        if let [a, b, c, d, e, f] = on_device.as_mut_slice() {
            self.producers.adaln_modulation6_bf16(&self.stream, &params, &modulation, [a, b, c, d, e, f])?;
        }
        self.wait()?;
        on_device.iter().zip(parts.out).try_for_each(|(from, to)| download(from, to, bf16::from_bits))
    }
}

fn called<T>(call: &'static str, result: CudaResult<T>) -> Result<T> {
    result.map_err(|error| Error::driver(call, error))
}

fn upload<T: DeviceCopy>(host: &[T]) -> Result<DeviceBuffer<T>> {
    called("copy to the device", DeviceBuffer::from_slice(host))
}

fn upload_bf16(host: &[bf16]) -> Result<DeviceBuffer<u16>> {
    upload(&host.iter().map(|v| v.to_bits()).collect::<Vec<_>>())
}

fn upload_e4m3(host: &[E4m3]) -> Result<DeviceBuffer<u8>> {
    upload(&host.iter().map(|v| v.to_bits()).collect::<Vec<_>>())
}

fn download<T: DeviceCopy + Default, U>(
    device: &DeviceBuffer<T>,
    host: &mut [U],
    value: impl Fn(T) -> U,
) -> Result<()> {
    let mut bits = vec![T::default(); host.len()];
    called("copy from the device", device.copy_to(&mut bits))?;
    for (host, bits) in host.iter_mut().zip(bits) {
        *host = value(bits);
    }
    Ok(())
}
