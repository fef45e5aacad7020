//! Inputs that make one unit in the last place of an intermediate visible in the bytes.
//!
//! A sink keeps 8, 4 or 2 significant bits of 24, so on ordinary values a wrong rounding mode shows once in 2^16 elements. A modulation by a
//! table has f32 operands: they can cancel the row, or put every sum on a tie. Without one, a row of which the large elements cancel has a
//! mean of rounding errors, which FP8 shows by a small scale.

use super::Case;
use super::support::random::{Kind, Problem, Random};
use adaptive_layernorm_producers::E4m3;
use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::{ModulationKind, SinkKind};
use half::bf16;

/// The cases of a call, with so many rows of rounding errors; none for NVFP4 without a table.
pub fn cases(call: Call, rows: usize, dim: usize, residuals: u64) -> Vec<Case> {
    if call.operator.modulation() != ModulationKind::PerTokenTable {
        let shows = call.operator.sink() == SinkKind::Fp8;
        return (1..=residuals).filter(|_| shows).map(|seed| cancelled(call, dim, seed)).collect();
    }
    let mut cases: Vec<Case> = (1..=residuals).map(|seed| residual(call, dim, seed)).collect();
    cases.extend([tie(call, rows, dim), codes(call, rows, dim)]);
    cases
}

fn problem(call: Call, rows: usize, dim: usize) -> Problem {
    let call = Call { shift_idx: 0, scale_idx: 1, ..call };
    Problem { call, rows, dim, chunks: 2, kind: Kind::Normal, seed: 4 }
}

/// One row whose table takes away what the row is (computed in f64): only rounding errors are left.
fn residual(call: Call, dim: usize, seed: u64) -> Case {
    let problem = problem(call, 1, dim);
    let mut random = Random(seed);
    // Tiny elements among large ones, so that partial sums are not exact; in half of the rows the last two rule the variance.
    let value = |random: &mut Random, i: usize| match i % 5 {
        _ if seed.is_multiple_of(2) && i + 2 >= dim => 100.0 * (1.0 + random.unit()),
        2 => random.unit() * 0.5f32.powi(10 + i32::try_from(i % 16).unwrap_or(0)),
        _ => 3.0 + random.normal(),
    };
    let x: Vec<bf16> = (0..dim).map(|i| bf16::from_f32(value(&mut random, i))).collect();
    let exact: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
    #[allow(clippy::cast_precision_loss, reason = "a small D")]
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / dim as f64;
    let center = mean(&mut exact.iter().copied());
    let variance = mean(&mut exact.iter().map(|x| (x - center) * (x - center)));
    let rstd = 1.0 / (variance + f64::from(call.eps)).sqrt();
    #[allow(clippy::cast_possible_truncation, reason = "to the nearest f32")]
    let shift = exact.iter().map(|x| -((x - center) * rstd) as f32);
    let table = shift.chain(std::iter::repeat_n(0.0, dim)).collect();
    with(problem, x, table, 1e-9)
}

/// One row of large elements, whose sum is 0, and small ones; a modulation that changes nothing, and a scale at which e4m3 has a code for what
/// the small elements are less the mean.
fn cancelled(call: Call, dim: usize, seed: u64) -> Case {
    let problem = problem(call, 1, dim);
    let mut random = Random(seed);
    let mut x: Vec<f32> = (0..dim).map(|_| random.normal() / 64.0).collect();
    for pair in 0..dim / 8 {
        let (large, at) = ((1.0 + random.unit()) * 2f32.powi(12 + i32::try_from(pair % 6).unwrap_or(0)), 3 * pair);
        let large = bf16::from_f32(large).to_f32();
        x[at] = large;
        x[dim - 1 - at] = -large;
    }
    // Elsewhere, in an order of the seed's.
    for (at, left) in (1..dim).rev().zip((2..=dim as u64).rev()) {
        x.swap(at, usize::try_from(random.below(left)).unwrap_or(0));
    }
    let mut inputs = problem.inputs();
    for (name, tensor) in &mut inputs {
        match &mut tensor.data {
            Data::Bf16(data) if name == "x" => data.iter_mut().zip(&x).for_each(|(to, x)| *to = bf16::from_f32(*x)),
            Data::Bf16(data) => data.fill(bf16::ZERO),
            Data::E4m3(data) => data.fill(E4m3::from_f32(0.0)),
            Data::F32(data) if name == "act_scale" => data.fill(2f32.powi(-22)),
            Data::F32(_) | Data::U8(_) => {}
        }
    }
    Case::with_inputs(problem, inputs)
}

/// `fma(n, 2^-24, 1 + 3·2^-8)`: a hair beside the point between two bf16, of which the upper is even.
fn tie(call: Call, rows: usize, dim: usize) -> Case {
    let problem = problem(call, rows, dim);
    let mut random = Random(problem.seed);
    let x = (0..rows * dim).map(|_| bf16::from_f32(random.normal())).collect();
    let shift = 1.0 + 3.0 / 256.0;
    let scale = -1.0 + f32::EPSILON / 2.0;
    with(problem, x, [vec![shift; dim], vec![scale; dim]].concat(), 1.0)
}

/// `v = shift`, which lies on the ties between codes: of e4m3 in every binade, or of e2m1 in blocks whose amax is 6 times a scale.
fn codes(call: Call, rows: usize, dim: usize) -> Case {
    const OF_E2M1: [f32; 8] = [6.0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];
    let problem = problem(call, rows, dim);
    let mut random = Random(problem.seed);
    let x = (0..rows * dim).map(|_| bf16::from_f32(random.normal())).collect();
    let power = |n: usize| 2f32.powi(i32::try_from(n).unwrap_or(0) - 11);
    // A scale of every mantissa: the products with a code's bounds have 7 bits.
    let scale = |block: usize| (1.0 + f32::from(u8::try_from(block % 8).unwrap_or(0)) / 8.0) * power(block % 20);
    let of_e4m3 = |d: usize| f32::from(u8::try_from(17 + 2 * (d % 8)).unwrap_or(0)) / 16.0 * power(d / 16 % 20);
    let shift = (0..dim).map(|d| {
        let sign = if d % 16 < 8 { 1.0 } else { -1.0 };
        sign * if call.recipe.is_some() { OF_E2M1[d % 8] * scale(d / 16) } else { of_e4m3(d) }
    });
    with(problem, x, shift.chain(std::iter::repeat_n(-1.0, dim)).collect(), 1.0)
}

/// The call on these rows and this table; temb is zero.
fn with(problem: Problem, x: Vec<bf16>, table: Vec<f32>, act_scale: f32) -> Case {
    let Problem { rows, dim, .. } = problem;
    let mut inputs: Tensors = problem.inputs();
    let mut set = |name: &str, tensor: Tensor| inputs.insert(name.to_owned(), tensor);
    set("x", Tensor::new([rows, dim], x));
    set("table", Tensor::new([2, dim], table));
    set("temb", Tensor::new([rows, 2, dim], vec![bf16::ZERO; rows * 2 * dim]));
    if let Some(tensor) = inputs.get_mut("act_scale") {
        tensor.data = Data::F32(vec![act_scale]);
    }
    Case::with_inputs(problem, inputs)
}
