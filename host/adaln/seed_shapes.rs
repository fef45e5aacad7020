//! The shapes that demo and bench show: those of the DiT models the operators were written for.
use crate::inputs::Extents;
use adaptive_layernorm_producers::Operator;
use adaptive_layernorm_producers::operator::SinkKind;

const ROWS: [(usize, usize); 5] = [(16, 2048), (64, 3072), (256, 3072), (2520, 3072), (4096, 3072)];
const SIX_WAY: [(usize, usize, usize); 3] = [(1, 51, 1536), (1, 2520, 3072), (1, 5070, 3072)];

/// The shapes of an operator.
pub fn of(operator: Operator) -> Vec<Extents> {
    match operator.sink() {
        SinkKind::SixBf16 => SIX_WAY.map(|(b, s, dim)| Extents::new([b, s], dim)).to_vec(),
        SinkKind::Bf16 | SinkKind::Fp8 | SinkKind::AwqFp8 | SinkKind::Nvfp4 => {
            ROWS.map(|(rows, dim)| Extents::new([rows], dim)).to_vec()
        }
    }
}
