//! A call of any operator on named tensors.
use super::tensor::Held;
use super::{Data, Tensor, Tensors, shapes};
use crate::backend::Backend;
use crate::check::{self, Sizes};
use crate::convert::{to_index, to_usize};
use crate::error::{Error, Result};
use crate::operand::{
    AwqFp8, Bf16, Broadcast, BroadcastFp8, Fp8, Matrix, Modulation, NoAffine, Nvfp4, PerToken, PerTokenTable, Sink,
    SixWay,
};
use crate::operator::{Axis, ModulationKind, OperandSpec, Operator, SinkKind};
use crate::recipe::Nvfp4Recipe;

/// An operator and its parameters that are not tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// The operator.
    pub operator: Operator,
    /// For NVFP4 operators, and only for them.
    pub recipe: Option<Nvfp4Recipe>,
    /// Added to the variance.
    pub eps: f32,
    /// Chunk of the table that shifts.
    pub shift_idx: u32,
    /// Chunk of the table that scales.
    pub scale_idx: u32,
}

impl Call {
    /// The defaults of the original package: eps 1e-5, chunk 0 shifts, chunk 1 scales, no recipe.
    pub const fn new(operator: Operator) -> Self {
        Self { operator, recipe: None, eps: 1e-5, shift_idx: 0, scale_idx: 1 }
    }

    /// The same call with a recipe.
    pub const fn with_recipe(mut self, recipe: Nvfp4Recipe) -> Self {
        self.recipe = Some(recipe);
        self
    }

    /// Checks the inputs and the parameters as a run does, and gives R, D and C. Tensors that the operator does not know are ignored.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::DType`], [`Error::Shape`], [`Error::Length`], [`Error::ChunkIndex`], the errors of D and R, and of a
    /// recipe or a global scale that does not fit.
    pub fn sizes(&self, inputs: &Tensors) -> Result<Sizes> {
        check::recipe(self.operator, self.recipe)?;
        let sizes = shapes::sizes(self.operator, inputs)?;
        check::parameters(sizes, self, inputs.contains_key("global_scale"))?;
        Ok(sizes)
    }

    /// Outputs of the right dtypes and shapes, all zero; their leading axes are those of the first input.
    ///
    /// # Errors
    /// As [`Call::sizes`], and sizes no buffer can have.
    pub fn allocate(&self, inputs: &Tensors) -> Result<Tensors> {
        let sizes = self.sizes(inputs)?;
        self.operator.outputs().map(|spec| self.output(sizes, spec, inputs)).collect()
    }

    fn output(&self, sizes: Sizes, spec: &OperandSpec, inputs: &Tensors) -> Result<(String, Tensor)> {
        let first = self.operator.inputs().next().and_then(|first| Some((first, inputs.get(first.name)?)));
        // A matrix of rows keeps the leading axes that its input had in place of R.
        let leading =
            first.map(|(first, tensor)| &tensor.shape[..tensor.shape.len().saturating_sub(first.shape.len() - 1)]);
        let mut shape = Vec::new();
        for axis in spec.shape {
            match (axis, leading) {
                (Axis::Rows, Some(leading)) => shape.extend_from_slice(leading),
                // Checked below: the product of the axes fits.
                _ => shape.push(to_index(check::axis_length(sizes, *axis)?)),
            }
        }
        let len = to_index(check::elements(sizes, spec)?);
        Ok((spec.name.to_owned(), Tensor { shape, data: Data::zeros(spec.dtype, len) }))
    }

    /// Runs the call into new outputs: `out`, or `packed` and `sf_swizzled`, or `out0` to `out5`.
    ///
    /// # Errors
    /// As [`Call::sizes`] and the backend's `run`.
    pub fn run(&self, backend: &dyn Backend, inputs: &Tensors) -> Result<Tensors> {
        let mut outputs = self.allocate(inputs)?;
        self.run_into(backend, inputs, &mut outputs)?;
        Ok(outputs)
    }

    /// Runs the call into outputs that exist.
    ///
    /// # Errors
    /// As [`Call::run`].
    pub fn run_into(&self, backend: &dyn Backend, inputs: &Tensors, outputs: &mut Tensors) -> Result<()> {
        let sizes = self.sizes(inputs)?;
        let from = Inputs { operator: self.operator, tensors: inputs };
        let mut to = Outputs { operator: self.operator, tensors: outputs.iter_mut().collect() };
        let Some(modulation) = self.modulation(&from)? else {
            return backend.run_six_way(SixWay {
                adaln_params: from.get("adaln_params")?,
                layer_modulation: from.get("layer_modulation")?,
                out: to.six()?,
            });
        };
        let Some(sink) = self.sink(&from, &mut to)? else {
            return Err(Error::NoSuchOperator { modulation: modulation.kind(), sink: self.operator.sink() });
        };
        let x = Matrix::new(from.get("x")?, to_usize(sizes.rows), to_usize(sizes.dim));
        backend.run(x, modulation, self.eps, sink)
    }

    /// The modulation of a row operator; none for modulation6.
    fn modulation<'a>(&self, from: &Inputs<'a>) -> Result<Option<Modulation<'a>>> {
        let &Self { shift_idx, scale_idx, .. } = self;
        Ok(Some(match self.operator.modulation() {
            ModulationKind::None => Modulation::NoAffine(NoAffine),
            ModulationKind::Broadcast => {
                Modulation::Broadcast(Broadcast { scale: from.get("scale")?, shift: from.get("shift")? })
            }
            ModulationKind::PerToken => {
                Modulation::PerToken(PerToken { scale: from.get("scale")?, shift: from.get("shift")? })
            }
            ModulationKind::PerTokenTable => {
                let (temb, table) = (from.get("temb")?, from.get("table")?);
                Modulation::PerTokenTable(PerTokenTable { temb, table, shift_idx, scale_idx })
            }
            ModulationKind::BroadcastFp8 => Modulation::BroadcastFp8(BroadcastFp8 {
                scale: from.get("scale_fp8")?,
                shift: from.get("shift_fp8")?,
                scale_deq: from.get("scale_deq")?,
                shift_deq: from.get("shift_deq")?,
            }),
            ModulationKind::SixWay => return Ok(None),
        }))
    }

    /// The sink of a row operator; none for modulation6.
    fn sink<'a>(&self, from: &Inputs<'a>, to: &mut Outputs<'a>) -> Result<Option<Sink<'a>>> {
        Ok(Some(match self.operator.sink() {
            SinkKind::Bf16 => Sink::Bf16(Bf16 { out: to.take("out")? }),
            SinkKind::Fp8 => Sink::Fp8(Fp8 { act_scale: from.get("act_scale")?, out: to.take("out")? }),
            SinkKind::AwqFp8 => {
                let (inv_s, act_scale) = (from.get("inv_s")?, from.get("act_scale")?);
                Sink::AwqFp8(AwqFp8 { inv_s, act_scale, out: to.take("out")? })
            }
            SinkKind::Nvfp4 => Sink::Nvfp4(Nvfp4 {
                recipe: self.recipe.ok_or(Error::RecipeMissing { operator: self.operator })?,
                global_scale: from
                    .tensors
                    .contains_key("global_scale")
                    .then(|| from.get("global_scale"))
                    .transpose()?,
                packed: to.take("packed")?,
                sf_swizzled: to.take("sf_swizzled")?,
            }),
            SinkKind::SixBf16 => return Ok(None),
        }))
    }
}

/// Inputs by name.
struct Inputs<'a> {
    operator: Operator,
    tensors: &'a Tensors,
}

impl<'a> Inputs<'a> {
    fn get<T: Held>(&self, operand: &'static str) -> Result<&'a [T]> {
        let operator = self.operator;
        let tensor = self.tensors.get(operand).ok_or(Error::Missing { operator, operand, expected: T::DTYPE })?;
        T::slice(&tensor.data).ok_or_else(|| wrong_dtype::<T>(operator, operand, &tensor.data))
    }
}

/// Outputs by name, each of which can be taken once.
struct Outputs<'a> {
    operator: Operator,
    tensors: std::collections::BTreeMap<&'a String, &'a mut Tensor>,
}

impl<'a> Outputs<'a> {
    fn take<T: Held>(&mut self, operand: &'static str) -> Result<&'a mut [T]> {
        let operator = self.operator;
        let name = operand.to_owned();
        let tensor = self.tensors.remove(&name).ok_or(Error::Missing { operator, operand, expected: T::DTYPE })?;
        if tensor.data.dtype() != T::DTYPE {
            return Err(wrong_dtype::<T>(operator, operand, &tensor.data));
        }
        T::slice_mut(&mut tensor.data).ok_or(Error::Missing { operator, operand, expected: T::DTYPE })
    }

    fn six(&mut self) -> Result<[&'a mut [half::bf16]; 6]> {
        let mut next = |name| self.take(name);
        Ok([next("out0")?, next("out1")?, next("out2")?, next("out3")?, next("out4")?, next("out5")?])
    }
}

fn wrong_dtype<T: Held>(operator: Operator, operand: &'static str, got: &Data) -> Error {
    Error::DType { operator, operand, expected: T::DTYPE, got: got.dtype().to_string() }
}
