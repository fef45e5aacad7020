//! Random operands of any operator.
use crate::failure::{Failure, Outcome};
use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::{Axis, OperandSpec};
use adaptive_layernorm_producers::{DType, E4m3, Nvfp4Recipe, bf16};
use clap::ValueEnum;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::fmt;
use std::str::FromStr;

/// The shape of a call: the axes in place of R, D, and the chunks of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents {
    /// The axes whose product is R.
    pub leading: Vec<usize>,
    /// D.
    pub dim: usize,
    /// C.
    pub chunks: usize,
}

impl Extents {
    /// A shape with two chunks, a shift and a scale.
    pub fn new(leading: impl Into<Vec<usize>>, dim: usize) -> Self {
        Self { leading: leading.into(), dim, chunks: 2 }
    }

    /// Whether R or D is 0.
    pub fn is_empty(&self) -> bool {
        self.dim == 0 || self.leading.contains(&0)
    }

    /// Refuses a shape whose operands do not fit this machine's memory, before anything is drawn.
    pub fn fit(&self, call: &Call) -> Outcome {
        let bytes = |spec: &OperandSpec| {
            self.of(spec).into_iter().try_fold(spec.dtype.bytes(), |bytes, axis| bytes.checked_mul(axis as u64))
        };
        let mut operands = call.operator.inputs().chain(call.operator.outputs());
        let once = operands.try_fold(0u64, |sum, spec| sum.checked_add(bytes(spec)?));
        // Twice: a benchmark's copy, or what a backend makes of the operands. What is asked for is not touched, and given back at once.
        let all = once.and_then(|bytes| usize::try_from(bytes).ok()?.checked_mul(2));
        if all.is_some_and(|all| Vec::<u8>::new().try_reserve_exact(all).is_ok()) {
            return Ok(());
        }
        let needed = all.map_or("more bytes than can be counted".to_owned(), |all| format!("{all} bytes"));
        Err(Failure::input(format!("{}: {self} needs {needed} of memory; choose a smaller shape", call.operator)))
    }

    fn of(&self, spec: &OperandSpec) -> Vec<usize> {
        let mut shape = Vec::new();
        for axis in spec.shape {
            match axis {
                Axis::Rows => shape.extend_from_slice(&self.leading),
                Axis::Dim => shape.push(self.dim),
                Axis::HalfDim => shape.push(self.dim / 2),
                Axis::Chunks => shape.push(self.chunks),
                Axis::Six => shape.push(6),
                Axis::Scalar => shape.push(1),
                // An output only.
                Axis::ScaleLayout => {}
            }
        }
        shape
    }
}

/// Reads `RxD`, or `BxSxD` and so on: the last number is D.
impl FromStr for Extents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let axes: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
        match axes.as_deref() {
            Ok([leading @ .., dim]) if !leading.is_empty() => {
                let elements = leading.iter().try_fold(*dim, |product, axis| product.checked_mul(*axis));
                elements.map(|_| Self::new(leading, *dim)).ok_or_else(|| "the shape is too large".to_owned())
            }
            _ => Err("expected RxD, for example 2520x3072".to_owned()),
        }
    }
}

/// Such as `2520x3072` or `1x51x1536`.
impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.leading.iter().chain([&self.dim]).map(ToString::to_string).collect::<Vec<_>>().join("x");
        f.pad(&text)
    }
}

/// How the large operands are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Values {
    /// N(0, 1)
    Normal,
    /// 256 + N(0, 1) in units of bf16 there: statistics that cancel
    Offset,
    /// N(0, 1), one column in 64 times 80
    Outliers,
    /// N(0, 1) times powers of two over 20 binades
    Wide,
    /// Rows of one value, or all but one
    Constant,
    /// N(0, 1) with NaN, infinities, zeros, subnormals and blocks of zeros
    Specials,
}

impl Values {
    /// Every distribution.
    pub const ALL: [Self; 6] = [Self::Normal, Self::Offset, Self::Outliers, Self::Wide, Self::Constant, Self::Specials];
}

/// Such as `outliers`.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

/// Most values that are drawn for one operand; a larger operand repeats them. Prime, so that no two rows are the same.
const PERIOD: usize = 1_048_573;

/// What is drawn for `x` and the modulation, and the values of the scalars.
#[derive(Debug)]
pub struct Source<'r> {
    /// Where the randomness comes from.
    pub random: &'r mut ChaCha8Rng,
    /// Distribution of x (of adaln_params for modulation6).
    pub values: Values,
    /// The static scale.
    pub act_scale: f32,
    /// The global scale of recipes that read one, if any.
    pub global_scale: Option<f32>,
}

impl Source<'_> {
    /// Every input of a call.
    pub fn draw(&mut self, call: &Call, extents: &Extents) -> Tensors {
        let mut inputs = Tensors::new();
        for spec in call.operator.inputs() {
            let shape = extents.of(spec);
            if !spec.optional || self.has_global_scale(call) {
                let tensor = Tensor { data: self.operand(spec, extents.dim, shape.iter().product()), shape };
                inputs.insert(spec.name.to_owned(), tensor);
            }
        }
        inputs
    }

    fn has_global_scale(&self, call: &Call) -> bool {
        self.global_scale.is_some() && call.recipe.is_some_and(Nvfp4Recipe::takes_global_scale)
    }

    fn operand(&mut self, spec: &OperandSpec, dim: usize, len: usize) -> Data {
        let values = self.values;
        match spec.name {
            "act_scale" => vec![self.act_scale].into(),
            "global_scale" => vec![self.global_scale.unwrap_or(1.0)].into(),
            "scale_deq" | "shift_deq" => vec![self.random.random_range(0.001..0.02f32)].into(),
            "inv_s" => self.fill(spec.dtype, len, |random, _| random.random_range(0.25..2.0)),
            "scale_fp8" | "shift_fp8" => self.fill(spec.dtype, len, |random, _| 40.0 * normal(random)),
            "x" | "adaln_params" => self.fill(spec.dtype, len, |random, at| value(random, values, at, dim)),
            _ if values == Values::Specials => self.fill(spec.dtype, len, |random, _| special(random, 400)),
            // Scales and shifts.
            _ => self.fill(spec.dtype, len, |random, _| 0.5 * normal(random)),
        }
    }

    fn fill(&mut self, dtype: DType, len: usize, mut draw: impl FnMut(&mut ChaCha8Rng, usize) -> f32) -> Data {
        let drawn = (0..len.min(PERIOD)).map(|at| draw(self.random, at));
        match dtype {
            DType::Bf16 => repeat(drawn.map(bf16::from_f32).collect(), len).into(),
            DType::F32 => repeat(drawn.collect::<Vec<f32>>(), len).into(),
            DType::E4m3 => repeat(drawn.map(E4m3::from_f32).collect(), len).into(),
            // Outputs only.
            DType::U8 => vec![0u8; len].into(),
        }
    }
}

/// The values again and again, up to a length.
fn repeat<T: Copy>(values: Vec<T>, len: usize) -> Vec<T> {
    let mut all = values;
    let period = all.len();
    // To the byte: growing on demand would ask for up to twice as much.
    all.reserve_exact(len.saturating_sub(period));
    while all.len() < len {
        all.extend_from_within(..period.min(len - all.len()));
    }
    all
}

fn normal(random: &mut ChaCha8Rng) -> f32 {
    StandardNormal.sample(random)
}

/// Element `at` of x.
fn value(random: &mut ChaCha8Rng, values: Values, at: usize, dim: usize) -> f32 {
    let (row, column) = (at / dim.max(1), at % dim.max(1));
    match values {
        Values::Normal => normal(random),
        Values::Offset => 256.0 + 2.0 * normal(random).round(),
        Values::Outliers => normal(random) * if column % 64 == 5 { 80.0 } else { 1.0 },
        Values::Wide => normal(random) * 2f32.powi(random.random_range(-12..8)),
        Values::Constant => constant(row) + if row % 2 == 1 && column == row % dim { 2.0 } else { 0.0 },
        Values::Specials => special(random, 150),
    }
}

/// The value of a row of nothing else; small enough that 2 more is another bf16.
fn constant(row: usize) -> f32 {
    [300.0, 0.0, -256.0, 1.0e-3][row / 2 % 4]
}

/// N(0, 1), but about once in `rare` one of the values that need care.
fn special(random: &mut ChaCha8Rng, rare: u32) -> f32 {
    const SPECIAL: [f32; 12] = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        0.0,
        1.0e-40,
        -1.0e-40,
        f32::MIN_POSITIVE,
        3.0e38,
        -3.0e38,
        448.0,
    ];
    if random.random_range(0..rare) == 0 { SPECIAL[random.random_range(0..SPECIAL.len())] } else { normal(random) }
}
