//! Inputs for any call, from a seed.
use super::calls;
use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::{Axis, OperandSpec};
use adaptive_layernorm_producers::{DType, E4m3};
use half::bf16;
use proptest::prelude::*;

/// SplitMix64: the same numbers on every machine.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// In 0..1.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// About N(0, 1), within ±3.5: the sum of four uniform values from one draw.
    pub fn normal(&mut self) -> f32 {
        let bits = self.bits();
        let sum: u64 = [0, 16, 32, 48].map(|shift| bits >> shift & 0xffff).iter().sum();
        (sum as f32 / 65_536.0 - 2.0) * 1.732
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// What the values of x (and of the modulation) look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// N(0, 1).
    Normal,
    /// N(1000, 1): a one-pass variance loses everything.
    Offset,
    /// Some columns 80 times larger.
    Outlier,
    /// Magnitudes over 40 binades.
    Wide,
    /// The same value in a whole row, but for one element.
    Constant,
    /// Small integers: many ties, zeros of both signs.
    Integers,
    /// NaN, infinities, subnormals and the largest values among normal ones.
    Specials,
    /// Any bits.
    Bits,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Normal,
        Self::Offset,
        Self::Outlier,
        Self::Wide,
        Self::Constant,
        Self::Integers,
        Self::Specials,
        Self::Bits,
    ];
}

/// A call, its shape and what its inputs are made from.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    pub call: Call,
    pub rows: usize,
    pub dim: usize,
    pub chunks: usize,
    pub kind: Kind,
    pub seed: u64,
}

impl Problem {
    /// A random problem; its `dim` suits the operator and is at most `dim`.
    pub fn random(random: &mut Random, rows: u64, dim: u64) -> Self {
        let mut call = random.pick(&calls());
        let divisor = u64::from(call.operator.dim_divisor());
        let dim = (1 + random.below(dim.div_ceil(divisor))) * divisor;
        let chunks = 1 + random.below(6);
        call.shift_idx = random.below(chunks) as u32;
        call.scale_idx = random.below(chunks) as u32;
        call.eps = random.pick(&[1e-5, 1e-6, 1e-12, 0.1, 0.0]);
        let kind = random.pick(&Kind::ALL);
        let rows = 1 + random.below(rows);
        Self { call, rows: rows as usize, dim: dim as usize, chunks: chunks as usize, kind, seed: random.bits() }
    }

    /// The operands of the call.
    pub fn inputs(&self) -> Tensors {
        let mut random = Random(self.seed);
        let mut inputs = Tensors::new();
        for spec in self.call.operator.inputs() {
            // A global scale only where it is allowed, and there in half of the cases.
            let wanted = !spec.optional
                || (self.call.recipe.is_some_and(|recipe| recipe.takes_global_scale()) && random.below(2) == 0);
            if wanted {
                inputs.insert(spec.name.to_owned(), self.tensor(spec, &mut random));
            }
        }
        inputs
    }

    fn tensor(&self, spec: &OperandSpec, random: &mut Random) -> Tensor {
        let axis = |axis: &Axis| match axis {
            Axis::Rows => self.rows,
            Axis::Dim => self.dim,
            Axis::Chunks => self.chunks,
            Axis::Six => 6,
            Axis::Scalar => 1,
            Axis::HalfDim | Axis::ScaleLayout => unreachable!("outputs only"),
        };
        let shape: Vec<usize> = spec.shape.iter().map(axis).collect();
        let len = shape.iter().product();
        // Modulations are tame more often than x: otherwise hardly a row would be without NaN.
        let is_x = ["x", "adaln_params"].contains(&spec.name);
        let kind = if is_x || random.below(4) == 0 { self.kind } else { Kind::Normal };
        let values = match shape.as_slice() {
            [1] if spec.shape == [Axis::Scalar] => vec![self.scalar(spec.name, random)],
            _ => values(kind, len, self.dim, random),
        };
        let data: Data = match spec.dtype {
            DType::Bf16 => values.into_iter().map(bf16::from_f32).collect::<Vec<_>>().into(),
            DType::F32 => values.into(),
            DType::E4m3 if kind == Kind::Bits => {
                (0..len).map(|_| E4m3::from_bits(random.bits() as u8)).collect::<Vec<_>>().into()
            }
            DType::E4m3 => values.into_iter().map(E4m3::from_f32).collect::<Vec<_>>().into(),
            DType::U8 => unreachable!("outputs only"),
        };
        Tensor { shape, data }
    }

    /// Mostly sensible scalars, sometimes what must not break anything.
    fn scalar(&self, name: &str, random: &mut Random) -> f32 {
        let sensible = match name {
            "act_scale" => 0.01 + random.unit() * 0.1,
            "global_scale" => random.pick(&[1.0, 2688.0 / 3.7, 0.37, 448.0]),
            _ => random.unit() * 2.0,
        };
        let extreme = random.pick(&[0.0, 1e-30, 3e38, -1.0, f32::NAN, f32::INFINITY, 1e-45]);
        if matches!(self.kind, Kind::Specials | Kind::Bits) && random.below(3) == 0 { extreme } else { sensible }
    }
}

/// Values of a kind; rows are `dim` long.
pub fn values(kind: Kind, len: usize, dim: usize, random: &mut Random) -> Vec<f32> {
    let base = random.normal() * 3.0;
    let value = |i: usize, random: &mut Random| match kind {
        Kind::Normal => random.normal(),
        Kind::Offset => 1000.0 + random.normal(),
        Kind::Outlier => random.normal() * if i % dim % 7 == 3 { 80.0 } else { 1.0 },
        Kind::Wide => random.normal() * 2f32.powi(random.below(41) as i32 - 20),
        Kind::Constant => base + if i % dim == dim / 2 { random.unit() } else { 0.0 },
        Kind::Integers => random.pick(&[-0.0, 0.0, 1.0, -1.0, 2.0, -3.0, 6.0, 0.0]),
        Kind::Specials => special(random),
        Kind::Bits => f32::from_bits((random.bits() as u32) << 16),
    };
    (0..len).map(|i| value(i, random)).collect()
}

fn special(random: &mut Random) -> f32 {
    if random.below(97) != 0 {
        return random.normal();
    }
    random.pick(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3.3e38, -3.3e38, 1e-40, -0.0, 1e-38])
}

/// Problems for proptest, which shrinks the shape.
pub fn problems(max_rows: usize, max_dim: usize) -> impl Strategy<Value = Problem> {
    let kinds = prop::sample::select(Kind::ALL.to_vec());
    let calls = prop::sample::select(calls());
    let eps = prop::sample::select(vec![1e-5, 1e-6, 1e-12, 0.1, 0.0]);
    (calls, 1..=max_rows, 1..=max_dim, 1..=6usize, kinds, any::<u64>(), eps).prop_map(
        |(mut call, rows, dim, chunks, kind, seed, eps)| {
            let divisor = call.operator.dim_divisor() as usize;
            call.eps = eps;
            call.shift_idx = (seed % chunks as u64) as u32;
            call.scale_idx = (seed / 7 % chunks as u64) as u32;
            Problem { call, rows, dim: dim.next_multiple_of(divisor), chunks, kind, seed }
        },
    )
}
