//! What an operator would give in float64, before anything is quantised: the yardstick of its error.
//!
//! Written from the contract's formulas and from nothing else in this library; no rounding is imitated.
use adaptive_layernorm_producers::named::{Call, Data, Tensors};
use adaptive_layernorm_producers::operator::{ModulationKind, SinkKind};

/// One row of one output.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// R's index.
    pub row: usize,
    /// Which of the outputs of modulation6; 0 for the others.
    pub output: usize,
}

/// The unquantised values of a row.
pub fn row(call: &Call, inputs: &Tensors, dim: usize, place: Place) -> Vec<f64> {
    let input = Input(inputs);
    if call.operator.sink() == SinkKind::SixBf16 {
        let (param, modulation) = ((place.row * 6 + place.output) * dim, place.output * dim);
        let at = |d| input.at("adaln_params", param + d) + input.at("layer_modulation", modulation + d);
        return (0..dim).map(at).collect();
    }
    let x: Vec<f64> = (0..dim).map(|d| input.at("x", place.row * dim + d)).collect();
    let mean = x.iter().sum::<f64>() / dim as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / dim as f64;
    let deviation = (variance + f64::from(call.eps)).sqrt();
    let modulated = |(d, x): (usize, &f64)| {
        let (scale, shift) = input.modulation(call, dim, place.row, d);
        (x - mean) / deviation * (1.0 + scale) + shift
    };
    let by_column = |(d, v): (usize, f64)| match call.operator.sink() {
        SinkKind::AwqFp8 => v * input.at("inv_s", d),
        SinkKind::Bf16 | SinkKind::Fp8 | SinkKind::Nvfp4 | SinkKind::SixBf16 => v,
    };
    x.iter().enumerate().map(modulated).enumerate().map(by_column).collect()
}

struct Input<'a>(&'a Tensors);

impl Input<'_> {
    /// An element of an operand; the call was checked, so the operand is there.
    fn at(&self, operand: &str, index: usize) -> f64 {
        match &self.0[operand].data {
            Data::Bf16(data) => data[index].to_f64(),
            Data::F32(data) => data[index].into(),
            Data::E4m3(data) => data[index].to_f32().into(),
            Data::U8(data) => data[index].into(),
        }
    }

    /// Scale and shift of an element.
    fn modulation(&self, call: &Call, dim: usize, row: usize, d: usize) -> (f64, f64) {
        match call.operator.modulation() {
            ModulationKind::None | ModulationKind::SixWay => (0.0, 0.0),
            ModulationKind::Broadcast => (self.at("scale", d), self.at("shift", d)),
            ModulationKind::PerToken => (self.at("scale", row * dim + d), self.at("shift", row * dim + d)),
            ModulationKind::PerTokenTable => {
                let chunks = self.0["table"].data.len() / dim;
                let entry = |chunk: u32| {
                    let chunk = chunk as usize;
                    self.at("table", chunk * dim + d) + self.at("temb", (row * chunks + chunk) * dim + d)
                };
                (entry(call.scale_idx), entry(call.shift_idx))
            }
            ModulationKind::BroadcastFp8 => {
                (self.at("scale_fp8", d) * self.at("scale_deq", 0), self.at("shift_fp8", d) * self.at("shift_deq", 0))
            }
        }
    }
}
