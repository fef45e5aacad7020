//! A random call: half of it drawn from what went wrong in kernels of this kind before.
use crate::inputs::{Extents, Source, Values};
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::operator::SinkKind;
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator};
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::fmt;

/// Dimensions at and around the limits of vectors, warps and shape classes.
const DIMS: [usize; 26] = [
    1, 2, 6, 8, 14, 16, 30, 48, 80, 248, 256, 264, 272, 768, 784, 1000, 1152, 1536, 3072, 3584, 5376, 6152, 12288,
    16384, 16400, 65536,
];
/// Numbers of rows at and around the tile of the scale layout and the warps of a block.
const ROWS: [usize; 18] = [0, 1, 2, 3, 7, 31, 32, 33, 60, 127, 128, 129, 130, 255, 256, 257, 1025, 65_600];
/// Elements of x at most, so that the reference stays quick.
const ELEMENTS: usize = 1 << 18;
const ACT_SCALES: [f32; 9] = [0.025, 1.0, 0.003, 448.0, 1e-30, 0.0, 3e38, f32::NAN, -1.0];
const GLOBAL_SCALES: [f32; 6] = [1.0, 448.0, 2688.0 / 11.3, 1e-20, 3e38, 0.0];
const EPS: [f32; 4] = [1e-5, 1e-6, 1e-12, 0.0];

/// A call with everything that its operands are drawn from.
#[derive(Debug)]
pub struct Case {
    /// The call.
    pub call: Call,
    extents: Extents,
    values: Values,
    act_scale: f32,
    global_scale: Option<f32>,
    random: ChaCha8Rng,
}

impl Case {
    /// Case `index` of a seed.
    pub fn draw(seed: u64, index: u64, operator: Operator) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(index);
        let extents = extents(&mut random, operator);
        let chunk = |random: &mut ChaCha8Rng| random.random_range(0..extents.chunks as u32);
        let call = Call {
            operator,
            recipe: (operator.sink() == SinkKind::Nvfp4).then(|| one_of(&mut random, &Nvfp4Recipe::ALL)),
            eps: one_of(&mut random, &EPS),
            shift_idx: chunk(&mut random),
            scale_idx: chunk(&mut random),
        };
        Self {
            call,
            values: one_of(&mut random, &Values::ALL),
            // Half of the time, scales that a user would choose.
            act_scale: if random.random() { 0.025 } else { one_of(&mut random, &ACT_SCALES) },
            global_scale: random.random::<bool>().then(|| one_of(&mut random, &GLOBAL_SCALES)),
            extents,
            random,
        }
    }

    /// Draws its operands, once.
    pub fn inputs(&mut self) -> Tensors {
        let Self { call, extents, values, act_scale, global_scale, random } = self;
        Source { random, values: *values, act_scale: *act_scale, global_scale: *global_scale }.draw(call, extents)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, extents, values, act_scale, global_scale, .. } = self;
        write!(f, "{} {extents}, {values} values, eps {}", call.operator, call.eps)?;
        match call.recipe {
            Some(recipe) if recipe.takes_global_scale() => {
                write!(f, ", {recipe}, global_scale {}", global_scale.unwrap_or(1.0))
            }
            Some(recipe) => write!(f, ", {recipe}"),
            None => write!(f, ", act_scale {act_scale}"),
        }
    }
}

fn extents(random: &mut ChaCha8Rng, operator: Operator) -> Extents {
    let divisor = operator.dim_divisor() as usize;
    let dim = if random.random() { one_of(random, &DIMS) } else { random.random_range(1..4096) };
    let dim = dim.next_multiple_of(divisor);
    let rows = if random.random() { one_of(random, &ROWS) } else { random.random_range(1..512) };
    let rows = rows.min(ELEMENTS / dim).max(usize::from(rows > 0));
    let leading = if rows % 3 == 0 { vec![3, rows / 3] } else { vec![rows] };
    Extents { leading, dim, chunks: random.random_range(1..=4) }
}

fn one_of<T: Copy>(random: &mut ChaCha8Rng, choices: &[T]) -> T {
    // None of the lists is empty.
    *choices.choose(random).unwrap_or(&choices[0])
}
