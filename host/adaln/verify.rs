//! A few rows of an output against the reference: what a benchmark does before it believes a time.
use crate::difference;
use crate::failure::{Failure, Outcome};
use adaptive_layernorm_producers::formats::scale_layout;
use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::Axis;
use adaptive_layernorm_producers::{Reference, Sizes};

/// Compares the first, a middle and the last row; rows do not depend on each other.
pub fn rows(call: &Call, inputs: &Tensors, outputs: &Tensors, sizes: Sizes) -> Outcome {
    if sizes.rows == 0 {
        return Ok(());
    }
    let mut places = vec![0, sizes.rows / 2, sizes.rows - 1];
    places.dedup();
    for row in places {
        let alone: Tensors =
            inputs.iter().map(|(name, tensor)| (name.clone(), input_row(call, name, tensor, sizes, row))).collect();
        let expected = call.run(&Reference, &alone)?;
        let got: Tensors =
            outputs.iter().map(|(name, tensor)| (name.clone(), output_row(name, tensor, sizes, row))).collect();
        if let Some(difference) = difference::first(&expected, &got) {
            let operator = call.operator;
            return Err(Failure::Check(format!("{operator}: row {row} differs from the reference: {difference}")));
        }
    }
    Ok(())
}

/// The row's part of an operand; all of it if rows share it.
fn input_row(call: &Call, name: &str, tensor: &Tensor, sizes: Sizes, row: u32) -> Tensor {
    match call.operator.operand(name) {
        Some(spec) if spec.shape.first() == Some(&Axis::Rows) => {
            let inner = &tensor.shape[tensor.shape.len() + 1 - spec.shape.len()..];
            part(tensor, [&[1], inner].concat(), sizes, row)
        }
        _ => tensor.clone(),
    }
}

/// The row's part of an output: of scale bytes, a layout of one row.
fn output_row(name: &str, tensor: &Tensor, sizes: Sizes, row: u32) -> Tensor {
    let Sizes { dim, .. } = sizes;
    match &tensor.data {
        Data::U8(scales) if name == "sf_swizzled" => {
            let mut alone = vec![0u8; scale_layout::offset(128, 0, dim) as usize];
            for column in 0..dim / scale_layout::BLOCK {
                let at = |row| scale_layout::offset(row, column, dim) as usize;
                alone[at(0)] = scales[at(row)];
            }
            Tensor::new([alone.len()], alone)
        }
        _ => {
            let last = tensor.shape.last().copied().unwrap_or(1);
            part(tensor, vec![1, last], sizes, row)
        }
    }
}

/// A row's elements.
fn part(tensor: &Tensor, shape: Vec<usize>, sizes: Sizes, row: u32) -> Tensor {
    let each = tensor.data.len() / sizes.rows as usize;
    let range = row as usize * each..(row as usize + 1) * each;
    let data = match &tensor.data {
        Data::Bf16(data) => data[range].to_vec().into(),
        Data::F32(data) => data[range].to_vec().into(),
        Data::E4m3(data) => data[range].to_vec().into(),
        Data::U8(data) => data[range].to_vec().into(),
    };
    Tensor { shape, data }
}
