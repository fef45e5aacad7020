//! modulation6: six bf16 outputs, `bf16(params[row, part, d] + modulation[part, d])`. A block for each row and part.
use crate::contract::abi::{Modulation6Arguments, PARTS};
use crate::ptx;
use crate::view::row_address;
use cuda_std::thread::{block_dim_x, block_idx_x, thread_idx_x};

/// Quads (four elements, 16 bytes of f32) that a thread has in flight.
const IN_FLIGHT: usize = 4;

/// Operands of the running block: rows of params, of modulation and of the output.
#[inline(always)]
fn rows(a: &Modulation6Arguments) -> (u64, u64, u64) {
    let (row, part) = (block_idx_x() / PARTS, block_idx_x() % PARTS);
    let mut out = a.out[0];
    let mut p = 1;
    while p < PARTS {
        out = if part == p { a.out[p as usize] } else { out };
        p += 1;
    }
    let params = row_address(a.params, block_idx_x(), a.dim * 4);
    (params, row_address(a.modulation, part, a.dim * 4), row_address(out, row, a.dim * 2))
}

/// D a multiple of 4, operands on 16-byte addresses.
#[inline(always)]
pub fn modulation6_aligned(a: &Modulation6Arguments) {
    let (params, modulation, out) = rows(a);
    ptx::start_after_previous_grid();
    let quads = a.dim / 4;
    let mut first = thread_idx_x();
    while first < quads {
        let quad = |i: usize| first + i as u32 * block_dim_x();
        // SAFETY: the host checked lengths and alignment; quads past the row are not touched.
        let load = |row: u64, i: usize| {
            let words = if quad(i) < quads { unsafe { ptx::load_128(row + quad(i) as u64 * 16) } } else { [0; 4] };
            words.map(f32::from_bits)
        };
        let p: [[f32; 4]; IN_FLIGHT] = core::array::from_fn(|i| load(params, i));
        let m: [[f32; 4]; IN_FLIGHT] = core::array::from_fn(|i| load(modulation, i));
        let mut i = 0;
        while i < IN_FLIGHT {
            let sum: [f32; 4] = core::array::from_fn(|e| p[i][e] + m[i][e]);
            if quad(i) < quads {
                let words = [ptx::bf16x2(sum[1], sum[0]), ptx::bf16x2(sum[3], sum[2])];
                // SAFETY: as above.
                unsafe { ptx::store_64(out + quad(i) as u64 * 8, words) };
            }
            i += 1;
        }
        first += IN_FLIGHT as u32 * block_dim_x();
    }
}

/// Any D and alignment.
#[inline(always)]
pub fn modulation6_any(a: &Modulation6Arguments) {
    let (params, modulation, out) = rows(a);
    ptx::start_after_previous_grid();
    let mut d = thread_idx_x();
    while d < a.dim {
        // SAFETY: the host checked that every operand covers its shape.
        unsafe {
            let p = f32::from_bits(ptx::load_32(params + d as u64 * 4));
            let m = f32::from_bits(ptx::load_32(modulation + d as u64 * 4));
            ptx::store_16(out + d as u64 * 2, ptx::bf16x2(0.0, p + m));
        }
        d += block_dim_x();
    }
}
