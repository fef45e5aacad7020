//! The PTX instructions that Rust has no word for: wide loads and stores, packed conversions, directed rounding.
//!
//! One function an instruction, no logic. Loads are not `pure`, so they stay where they are written: row and modulation
//! loads are issued before the first reduction because the source says so. They are not `ld.global.nc` either: that promises memory which
//! nothing writes while the kernel runs, and lets the assembler move it before the wait for the previous grid, which may write it.
use core::arch::asm;

/// 16 bytes. `address` must be 16-byte aligned and readable.
#[inline(always)]
pub unsafe fn load_128(address: u64) -> [u32; 4] {
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: the caller gives an aligned, readable address.
    unsafe {
        asm!("ld.global.v4.b32 {{{a},{b},{c},{d}}}, [{p}];", a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d, p = in(reg64) address, options(nostack))
    };
    [a, b, c, d]
}

/// 8 bytes. `address` must be 8-byte aligned and readable.
#[inline(always)]
pub unsafe fn load_64(address: u64) -> [u32; 2] {
    let (a, b): (u32, u32);
    // SAFETY: the caller gives an aligned, readable address.
    unsafe {
        asm!("ld.global.v2.b32 {{{a},{b}}}, [{p}];", a = out(reg32) a, b = out(reg32) b, p = in(reg64) address, options(nostack))
    };
    [a, b]
}

/// 4 bytes. `address` must be 4-byte aligned and readable.
#[inline(always)]
pub unsafe fn load_32(address: u64) -> u32 {
    let a: u32;
    // SAFETY: the caller gives an aligned, readable address.
    unsafe { asm!("ld.global.b32 {a}, [{p}];", a = out(reg32) a, p = in(reg64) address, options(nostack)) };
    a
}

/// 2 bytes, zero-extended. `address` must be 2-byte aligned and readable.
#[inline(always)]
pub unsafe fn load_16(address: u64) -> u32 {
    let a: u16;
    // SAFETY: the caller gives an aligned, readable address.
    unsafe { asm!("ld.global.b16 {a}, [{p}];", a = out(reg16) a, p = in(reg64) address, options(nostack)) };
    a as u32
}

/// 1 byte, zero-extended. `address` must be readable.
#[inline(always)]
pub unsafe fn load_8(address: u64) -> u32 {
    let a: u32;
    // SAFETY: the caller gives a readable address.
    unsafe { asm!("ld.global.u8 {a}, [{p}];", a = out(reg32) a, p = in(reg64) address, options(nostack)) };
    a
}

/// Stores 16 bytes. `address` must be 16-byte aligned and writable.
#[inline(always)]
pub unsafe fn store_128(address: u64, v: [u32; 4]) {
    // SAFETY: the caller gives an aligned, writable address.
    unsafe {
        asm!("st.global.v4.b32 [{p}], {{{a},{b},{c},{d}}};", a = in(reg32) v[0], b = in(reg32) v[1], c = in(reg32) v[2], d = in(reg32) v[3], p = in(reg64) address, options(nostack))
    };
}

/// Stores 8 bytes. `address` must be 8-byte aligned and writable.
#[inline(always)]
pub unsafe fn store_64(address: u64, v: [u32; 2]) {
    // SAFETY: the caller gives an aligned, writable address.
    unsafe {
        asm!("st.global.v2.b32 [{p}], {{{a},{b}}};", a = in(reg32) v[0], b = in(reg32) v[1], p = in(reg64) address, options(nostack))
    };
}

/// Stores 4 bytes. `address` must be 4-byte aligned and writable.
#[inline(always)]
pub unsafe fn store_32(address: u64, v: u32) {
    // SAFETY: the caller gives an aligned, writable address.
    unsafe { asm!("st.global.b32 [{p}], {a};", a = in(reg32) v, p = in(reg64) address, options(nostack)) };
}

/// Stores 2 bytes. `address` must be 2-byte aligned and writable.
#[inline(always)]
pub unsafe fn store_16(address: u64, v: u32) {
    // SAFETY: the caller gives an aligned, writable address.
    unsafe { asm!("st.global.b16 [{p}], {a};", a = in(reg16) v as u16, p = in(reg64) address, options(nostack)) };
}

/// Stores 1 byte. `address` must be writable.
#[inline(always)]
pub unsafe fn store_8(address: u64, v: u32) {
    // SAFETY: the caller gives a writable address.
    unsafe { asm!("st.global.u8 [{p}], {a};", a = in(reg32) v, p = in(reg64) address, options(nostack)) };
}

/// Programmatic dependent launch: waits until the writes of the previous grid of the stream are visible. Without the launch
/// attribute, and before sm_90, there is nothing to wait for.
#[inline(always)]
fn wait_for_previous_grid() {
    // SAFETY: orders this grid after its predecessor; accesses no memory itself.
    #[cfg(sm_90_up)]
    unsafe {
        asm!("griddepcontrol.wait;", options(nostack))
    };
}

/// Waits until what the previous grid wrote is visible, and lets the next one start. At once: behind the loads of the modulation, which
/// the assembler then puts before those of x, 256 rows took up to 0.4 us longer.
#[inline(always)]
pub fn start_after_previous_grid() {
    wait_for_previous_grid();
    release_next_grid();
}

/// Programmatic dependent launch: lets the next grid of the stream start its prologue. After the wait, so that at most one
/// grid waits while another runs.
#[inline(always)]
fn release_next_grid() {
    // SAFETY: a hint to the scheduler; the next grid waits for this one's end before it touches memory.
    #[cfg(sm_90_up)]
    unsafe {
        asm!("griddepcontrol.launch_dependents;", options(nostack))
    };
}

/// The value, computed here and once.
#[inline(always)]
pub fn keep(value: u64) -> u64 {
    let kept: u64;
    // SAFETY: copies a register.
    unsafe { asm!("mov.b64 {r}, {a};", r = out(reg64) kept, a = in(reg64) value, options(nomem, nostack)) };
    kept
}

macro_rules! pure_instruction {
    ($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty as $class:ident),*) -> $out:ty as $out_class:ident = $text:literal) => {
        $(#[$doc])*
        #[inline(always)]
        pub fn $name($($arg: $ty),*) -> $out {
            let r: $out;
            // SAFETY: computes a register from registers.
            unsafe { asm!($text, r = out($out_class) r, $($arg = in($class) $arg,)* options(pure, nomem, nostack)) };
            r
        }
    };
}

pure_instruction!(/// `a·b + c`, one rounding to nearest even.
    fma(a: f32 as reg32, b: f32 as reg32, c: f32 as reg32) -> f32 as reg32 = "fma.rn.f32 {r}, {a}, {b}, {c};");
pure_instruction!(/// Square root, correctly rounded.
    sqrt(a: f32 as reg32) -> f32 as reg32 = "sqrt.rn.f32 {r}, {a};");
pure_instruction!(/// `1/a`, correctly rounded.
    reciprocal(a: f32 as reg32) -> f32 as reg32 = "rcp.rn.f32 {r}, {a};");
pure_instruction!(/// `a/b`, correctly rounded.
    divide(a: f32 as reg32, b: f32 as reg32) -> f32 as reg32 = "div.rn.f32 {r}, {a}, {b};");
pure_instruction!(/// Two f32 to packed bf16, nearest even, NaN to 0x7FFF; `high` lands in the upper half.
    bf16x2(high: f32 as reg32, low: f32 as reg32) -> u32 as reg32 = "cvt.rn.bf16x2.f32 {r}, {high}, {low};");
pure_instruction!(/// Larger of two packed bf16, NaN if either is.
    max_nan_bf16x2(a: u32 as reg32, b: u32 as reg32) -> u32 as reg32 = "max.NaN.bf16x2 {r}, {a}, {b};");
pure_instruction!(/// Smaller of two packed bf16; a number if either is.
    min_bf16x2(a: u32 as reg32, b: u32 as reg32) -> u32 as reg32 = "min.bf16x2 {r}, {a}, {b};");
pure_instruction!(/// Larger of two packed bf16; a number if either is.
    max_bf16x2(a: u32 as reg32, b: u32 as reg32) -> u32 as reg32 = "max.bf16x2 {r}, {a}, {b};");
pure_instruction!(/// Packed bf16 fma, one rounding to nearest even.
    fma_bf16x2(a: u32 as reg32, b: u32 as reg32, c: u32 as reg32) -> u32 as reg32 = "fma.rn.bf16x2 {r}, {a}, {b}, {c};");
pure_instruction!(/// Picks four bytes of the eight in `b:a`, a nibble of `s` each.
    permute(a: u32 as reg32, b: u32 as reg32, s: u32 as reg32) -> u32 as reg32 = "prmt.b32 {r}, {a}, {b}, {s};");

pure_instruction!(/// `a·b + c`, the product in 64 bits.
    multiply_add(a: u32 as reg32, b: u32 as reg32, c: u64 as reg64) -> u64 as reg64 = "mad.wide.u32 {r}, {a}, {b}, {c};");

#[cfg(hardware_e4m3)]
pure_instruction!(/// Four f32 to packed e4m3, `a` lowest: nearest even, saturating, NaN to 0x7F.
    e4m3x4(a: f32 as reg32, b: f32 as reg32, c: f32 as reg32, d: f32 as reg32) -> u32 as reg32 =
    "{{ .reg .b16 l, h; cvt.rn.satfinite.e4m3x2.f32 l, {b}, {a}; cvt.rn.satfinite.e4m3x2.f32 h, {d}, {c}; mov.b32 {r}, {{l, h}}; }}");
#[cfg(hardware_e4m3)]
pure_instruction!(/// One f32 to e4m3 in the low byte, the next byte 0.
    e4m3(a: f32 as reg32) -> u16 as reg16 = "cvt.rn.satfinite.e4m3x2.f32 {r}, 0f00000000, {a};");
#[cfg(hardware_e4m3)]
pure_instruction!(/// Two e4m3 to packed f16, exact.
    f16x2_from_e4m3x2(a: u16 as reg16) -> u32 as reg32 = "cvt.rn.f16x2.e4m3x2 {r}, {a};");
#[cfg(hardware_e4m3)]
pure_instruction!(/// f16 to f32, exact.
    f32_from_f16(a: u16 as reg16) -> f32 as reg32 = "cvt.f32.f16 {r}, {a};");
#[cfg(hardware_e2m1)]
pure_instruction!(/// Eight f32 to eight e2m1 nibbles, element 0 lowest: nearest, ties to even code, saturating.
    e2m1x8(a: f32 as reg32, b: f32 as reg32, c: f32 as reg32, d: f32 as reg32, e: f32 as reg32, f: f32 as reg32, g: f32 as reg32, h: f32 as reg32) -> u32 as reg32 =
    "{{ .reg .b8 t0, t1, t2, t3; cvt.rn.satfinite.e2m1x2.f32 t0, {b}, {a}; cvt.rn.satfinite.e2m1x2.f32 t1, {d}, {c}; cvt.rn.satfinite.e2m1x2.f32 t2, {f}, {e}; cvt.rn.satfinite.e2m1x2.f32 t3, {h}, {g}; mov.b32 {r}, {{t0, t1, t2, t3}}; }}");
