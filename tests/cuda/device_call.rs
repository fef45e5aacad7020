//! A call on operands in device memory, each between guards, at a chosen offset, the outputs poisoned.
use crate::gpu::Gpu;
use crate::support::random::Problem;
use adaptive_layernorm_producers::named::{Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::{ModulationKind, SinkKind};
use adaptive_layernorm_producers::{
    AwqFp8, Bf16, Broadcast, BroadcastFp8, Device, DeviceView, DeviceViewMut, E4m3, Element, Error, Fp8, Matrix,
    Modulation, NoAffine, Nvfp4, PerToken, PerTokenTable, Producers, Sink,
};
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::Stream;
use std::collections::BTreeMap;

/// Bytes before and after each operand.
const GUARD: usize = 512;
/// What guards hold: a NaN of every format, so that what is read from them shows.
const CANARY: u8 = 0xff;
/// What outputs hold before the call.
const POISON: u8 = 0x5a;

/// One operand in its own allocation.
struct Operand {
    memory: DeviceBuffer<u8>,
    /// Bytes of the operand's first element.
    start: usize,
    /// Elements.
    len: usize,
    tensor: Tensor,
}

/// The operands of a call.
pub struct DeviceCall {
    problem: Problem,
    operands: BTreeMap<String, Operand>,
    outputs: Vec<&'static str>,
}

impl DeviceCall {
    /// Copies the inputs to the device, every operand `offset` elements off its alignment.
    pub fn new(problem: Problem, inputs: &Tensors, offset: usize) -> Self {
        let mut operands = BTreeMap::new();
        for (name, tensor) in inputs {
            operands.insert(name.clone(), Operand::new(tensor, tensor.data.to_le_bytes(), offset));
        }
        let outputs = problem.call.allocate(inputs).unwrap();
        for (name, tensor) in &outputs {
            let bytes = vec![POISON; tensor.data.to_le_bytes().len()];
            // Block scales need words.
            let offset = if name == "sf_swizzled" { offset * 4 } else { offset };
            operands.insert(name.clone(), Operand::new(tensor, bytes, offset));
        }
        Self { problem, operands, outputs: problem.call.operator.outputs().map(|spec| spec.name).collect() }
    }

    /// Enqueues the call.
    pub fn launch(&self, gpu: &Gpu, stream: &Stream) -> Result<(), Error> {
        self.launch_with(&gpu.producers, stream)
    }

    /// Enqueues the call with kernels of another load.
    pub fn launch_with(&self, producers: &Producers, stream: &Stream) -> Result<(), Error> {
        let call = &self.problem.call;
        if call.operator.modulation() == ModulationKind::SixWay {
            let (params, modulation) = (self.input::<f32>("adaln_params"), self.input::<f32>("layer_modulation"));
            let out = ["out0", "out1", "out2", "out3", "out4", "out5"].map(|name| self.output(name));
            return producers.adaln_modulation6_bf16(stream, params, modulation, out);
        }
        let x = Matrix::new(self.input("x"), self.problem.rows, self.problem.dim);
        producers.run(stream, x, self.modulation(), call.eps, self.sink())
    }

    fn modulation(&self) -> Modulation<'_, Device> {
        let call = &self.problem.call;
        match call.operator.modulation() {
            ModulationKind::None | ModulationKind::SixWay => NoAffine.into(),
            ModulationKind::Broadcast => {
                Modulation::Broadcast(Broadcast { scale: self.input("scale"), shift: self.input("shift") })
            }
            ModulationKind::PerToken => {
                Modulation::PerToken(PerToken { scale: self.input("scale"), shift: self.input("shift") })
            }
            ModulationKind::PerTokenTable => Modulation::PerTokenTable(PerTokenTable {
                temb: self.input("temb"),
                table: self.input("table"),
                shift_idx: call.shift_idx,
                scale_idx: call.scale_idx,
            }),
            ModulationKind::BroadcastFp8 => Modulation::BroadcastFp8(BroadcastFp8 {
                scale: self.input("scale_fp8"),
                shift: self.input("shift_fp8"),
                scale_deq: self.input("scale_deq"),
                shift_deq: self.input("shift_deq"),
            }),
        }
    }

    fn sink(&self) -> Sink<'_, Device> {
        match self.problem.call.operator.sink() {
            SinkKind::Bf16 | SinkKind::SixBf16 => Sink::Bf16(Bf16 { out: self.output("out") }),
            SinkKind::Fp8 => Sink::Fp8(Fp8 { act_scale: self.input("act_scale"), out: self.output("out") }),
            SinkKind::AwqFp8 => Sink::AwqFp8(AwqFp8 {
                inv_s: self.input("inv_s"),
                act_scale: self.input("act_scale"),
                out: self.output("out"),
            }),
            SinkKind::Nvfp4 => Sink::Nvfp4(Nvfp4 {
                recipe: self.problem.call.recipe.unwrap(),
                global_scale: self.operands.contains_key("global_scale").then(|| self.input("global_scale")),
                packed: self.output("packed"),
                sf_swizzled: self.output("sf_swizzled"),
            }),
        }
    }

    fn input<T: Element>(&self, name: &str) -> DeviceView<'_, T> {
        let operand = &self.operands[name];
        assert_eq!(operand.tensor.data.dtype(), T::DTYPE, "{name}");
        // SAFETY: inside the operand's allocation, which lives as long as the view; every test waits for its launches.
        unsafe { DeviceView::from_raw_parts(operand.address(), operand.len) }
    }

    fn output<T: Element>(&self, name: &str) -> DeviceViewMut<'_, T> {
        let operand = &self.operands[name];
        assert_eq!(operand.tensor.data.dtype(), T::DTYPE, "{name}");
        // SAFETY: as for inputs; each output is viewed once a launch, and read after the stream is done.
        unsafe { DeviceViewMut::from_raw_parts(operand.address(), operand.len) }
    }

    /// Writes new values over an input.
    pub fn overwrite(&mut self, name: &str, tensor: &Tensor) {
        let operand = self.operands.get_mut(name).unwrap();
        let (start, bytes) = (operand.start, tensor.data.to_le_bytes());
        operand.memory.index(start..start + bytes.len()).copy_from(&bytes).unwrap();
    }

    /// The outputs; every guard must be whole and every input unchanged.
    pub fn outputs(&self) -> Tensors {
        let mut outputs = Tensors::new();
        for (name, operand) in &self.operands {
            let mut bytes = vec![0; operand.memory.len()];
            operand.memory.copy_to(&mut bytes).unwrap();
            let end = bytes.len() - GUARD;
            let whole = bytes[..operand.start].iter().chain(&bytes[end..]).all(|byte| *byte == CANARY);
            assert!(whole, "{:?}: written outside {name}", self.problem);
            let data = Data::from_le_bytes(operand.tensor.data.dtype(), &bytes[operand.start..end]);
            if self.outputs.contains(&name.as_str()) {
                outputs.insert(name.clone(), Tensor { shape: operand.tensor.shape.clone(), data });
            }
        }
        outputs
    }
}

impl Operand {
    fn new(tensor: &Tensor, bytes: Vec<u8>, offset: usize) -> Self {
        let start = GUARD + offset * tensor.data.dtype().bytes() as usize;
        let mut all = vec![CANARY; start];
        all.extend(bytes);
        all.resize(all.len() + GUARD, CANARY);
        Self { memory: DeviceBuffer::from_slice(&all).unwrap(), start, len: tensor.data.len(), tensor: tensor.clone() }
    }

    fn address(&self) -> u64 {
        self.memory.as_device_ptr().as_raw() + self.start as u64
    }
}

/// The bytes of a buffer as an output, and its last four as an f32 that another launch reads.
pub fn output_and_its_last_word(buffer: &DeviceBuffer<u8>) -> (DeviceViewMut<'_, E4m3>, DeviceView<'_, f32>) {
    let (address, len) = (buffer.as_device_ptr().as_raw(), buffer.len());
    assert!(len.is_multiple_of(4));
    // SAFETY: inside the buffer, which lives as long as the views; the launch that writes comes before the one that reads, in one stream.
    unsafe { (DeviceViewMut::from_raw_parts(address, len), DeviceView::from_raw_parts(address + len as u64 - 4, 1)) }
}
