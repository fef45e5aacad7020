//! Operands that cost nothing to make: a short pattern again and again.
use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::{Axis, OperandSpec};
use adaptive_layernorm_producers::{DType, E4m3, bf16};

/// Chunks of temb and table.
pub const CHUNKS: usize = 2;
/// Length of the pattern: prime, so that rows differ and a swap of rows or columns would show.
const PERIOD: usize = 1009;

/// The inputs of a call; the first rows are the same for any number of rows.
pub fn inputs(call: &Call, rows: usize, dim: usize) -> Tensors {
    let required = call.operator.inputs().filter(|spec| !spec.optional);
    required.map(|spec| (spec.name.to_owned(), operand(spec, rows, dim))).collect()
}

fn operand(spec: &OperandSpec, rows: usize, dim: usize) -> Tensor {
    let axis = |axis: &Axis| match axis {
        Axis::Rows => rows,
        Axis::Dim => dim,
        Axis::Chunks => CHUNKS,
        Axis::Six => 6,
        Axis::Scalar => 1,
        Axis::HalfDim | Axis::ScaleLayout => unreachable!("outputs only"),
    };
    let shape: Vec<usize> = spec.shape.iter().map(axis).collect();
    let len = shape.iter().product();
    let values = match spec.name {
        "act_scale" | "scale_deq" | "shift_deq" => vec![0.025],
        _ => (0..PERIOD).map(|at| (at * 389 % PERIOD) as f32 / 252.0 - 2.0).collect(),
    };
    let data: Data = match spec.dtype {
        DType::Bf16 => repeated(&values, len, bf16::from_f32).into(),
        DType::F32 => repeated(&values, len, |value| value).into(),
        DType::E4m3 => repeated(&values, len, E4m3::from_f32).into(),
        DType::U8 => unreachable!("outputs only"),
    };
    Tensor { shape, data }
}

fn repeated<T: Copy>(values: &[f32], len: usize, element: impl Fn(f32) -> T) -> Vec<T> {
    let pattern: Vec<T> = values.iter().map(|value| element(*value)).collect();
    pattern.iter().copied().cycle().take(len).collect()
}
