//! One method per operator, with the names and the order of operands of the original package.
//!
//! Written once; each backend gets them on top of its `run`. `$stream` is what a backend wants first: nothing on the CPU, a
//! stream on the GPU.

/// Adds the operators' methods to a backend that has `run` and `run_six_way`.
macro_rules! operator_methods {
    ($backend:ty, $space:ty $(, $stream:ident: $stream_type:ty)?) => {
        /// # Operators
        ///
        /// x is bf16 `[R, D]`; D is even for FP8 and bf16 outputs, a multiple of 16 for NVFP4. R = 0 is fine and does nothing.
        /// `eps` is added to the variance (1e-5 is usual). Errors are those of `run`. On a GPU, operands are
        /// [`DeviceView`](crate::DeviceView)s instead of slices and the stream comes first; nothing else differs.
        #[allow(clippy::too_many_arguments, reason = "the original package's signatures")]
        impl $backend {
            /// AdaLN to FP8: LayerNorm, `1 + scale` and `shift` `[D]`, e4m3 with a static scale.
            ///
            /// ```
            /// use adaptive_layernorm_producers::{Broadcast, Cpu, E4m3, Matrix, bf16};
            /// let x = [-1.0, 1.0, -1.0, 1.0].map(bf16::from_f32);
            /// let (scale, shift) = ([bf16::ONE; 4], [bf16::ZERO; 4]);
            /// let mut out = [E4m3::default(); 4];
            /// let modulation = Broadcast { scale: &scale, shift: &shift };
            /// Cpu.ada_layer_norm_quant_fp8_bf16(Matrix::new(&x, 1, 4), modulation, &[0.25], 1e-5, &mut out)?;
            /// assert_eq!(out.map(E4m3::to_f32), [-8.0, 8.0, -8.0, 8.0]); // ±1 · (1 + 1) / 0.25
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn ada_layer_norm_quant_fp8_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                modulation: Broadcast<impl Input<'a, bf16, $space>>,
                act_scale: impl Input<'a, f32, $space>,
                eps: f32,
                out: impl Output<'a, E4m3, $space>,
            ) -> Result<()> {
                self.run($($stream,)? x, modulation, eps, Fp8 { act_scale, out })
            }

            /// AdaLN to FP8 with a scale and shift of its own for every row, `[R, D]`.
            ///
            /// ```
            /// use adaptive_layernorm_producers::{Cpu, E4m3, Matrix, PerToken, bf16};
            /// let x = [-1.0, 1.0, -1.0, 1.0].map(bf16::from_f32);
            /// let scale = [0.0, 0.0, 1.0, 1.0].map(bf16::from_f32);
            /// let mut out = [E4m3::default(); 4];
            /// let modulation = PerToken { scale: &scale, shift: &[bf16::ZERO; 4] };
            /// Cpu.ada_layer_norm_quant_fp8_ptok_bf16(Matrix::new(&x, 2, 2), modulation, &[1.0], 1e-5, &mut out)?;
            /// assert_eq!(out.map(E4m3::to_f32), [-1.0, 1.0, -2.0, 2.0]);
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn ada_layer_norm_quant_fp8_ptok_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                modulation: PerToken<impl Input<'a, bf16, $space>>,
                act_scale: impl Input<'a, f32, $space>,
                eps: f32,
                out: impl Output<'a, E4m3, $space>,
            ) -> Result<()> {
                self.run($($stream,)? x, modulation, eps, Fp8 { act_scale, out })
            }

            /// AdaLN to FP8 with scale and shift from a table `[C, D]` plus an embedding `[R, C, D]`.
            ///
            /// ```
            /// use adaptive_layernorm_producers::{Cpu, E4m3, Matrix, PerTokenTable, bf16};
            /// let x = [-1.0, 1.0].map(bf16::from_f32);
            /// let temb = [0.5, 0.5, 1.0, 1.0].map(bf16::from_f32); // chunk 0 shifts, chunk 1 scales
            /// let mut out = [E4m3::default(); 2];
            /// let modulation = PerTokenTable { temb: &temb, table: &[0.0, 0.0, 1.0, 1.0], shift_idx: 0, scale_idx: 1 };
            /// Cpu.ada_layer_norm_quant_fp8_ptok_table_bf16(Matrix::new(&x, 1, 2), modulation, &[1.0], 1e-5, &mut out)?;
            /// assert_eq!(out.map(E4m3::to_f32), [-2.5, 3.5]); // ±1 · (1 + 2) + 0.5
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn ada_layer_norm_quant_fp8_ptok_table_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                modulation: PerTokenTable<impl Input<'a, bf16, $space>, impl Input<'a, f32, $space>>,
                act_scale: impl Input<'a, f32, $space>,
                eps: f32,
                out: impl Output<'a, E4m3, $space>,
            ) -> Result<()> {
                self.run($($stream,)? x, modulation, eps, Fp8 { act_scale, out })
            }

            /// AdaLN to FP8 with scale and shift `[D]` in FP8 too.
            ///
            /// ```
            /// use adaptive_layernorm_producers::{BroadcastFp8, Cpu, E4m3, Matrix, bf16};
            /// let x = [-1.0, 1.0].map(bf16::from_f32);
            /// let ones = [E4m3::from_f32(1.0); 2];
            /// let mut out = [E4m3::default(); 2];
            /// let modulation = BroadcastFp8 { scale: &ones, shift: &ones, scale_deq: &[2.0], shift_deq: &[0.5] };
            /// Cpu.ada_layer_norm_quant_fp8_modfp8_bf16(Matrix::new(&x, 1, 2), modulation, &[1.0], 1e-5, &mut out)?;
            /// assert_eq!(out.map(E4m3::to_f32), [-2.5, 3.5]); // ±1 · (1 + 2) + 0.5
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn ada_layer_norm_quant_fp8_modfp8_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                modulation: BroadcastFp8<impl Input<'a, E4m3, $space>, impl Input<'a, f32, $space>>,
                act_scale: impl Input<'a, f32, $space>,
                eps: f32,
                out: impl Output<'a, E4m3, $space>,
            ) -> Result<()> {
                self.run($($stream,)? x, modulation, eps, Fp8 { act_scale, out })
            }

            /// AdaLN to FP8 for a weight quantised with AWQ: a factor `inv_s` `[D]` per column before the static scale.
            ///
            /// ```
            /// use adaptive_layernorm_producers::{Broadcast, Cpu, E4m3, Matrix, bf16};
            /// let x = [-1.0, 1.0].map(bf16::from_f32);
            /// let inv_s = [0.5, 3.0].map(bf16::from_f32);
            /// let mut out = [E4m3::default(); 2];
            /// let modulation = Broadcast { scale: &[bf16::ZERO; 2], shift: &[bf16::ZERO; 2] };
            /// Cpu.awq_ada_layer_norm_quant_fp8_bf16(Matrix::new(&x, 1, 2), modulation, &inv_s, &[1.0], 1e-5, &mut out)?;
            /// assert_eq!(out.map(E4m3::to_f32), [-0.5, 3.0]);
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn awq_ada_layer_norm_quant_fp8_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                modulation: Broadcast<impl Input<'a, bf16, $space>>,
                inv_s: impl Input<'a, bf16, $space>,
                act_scale: impl Input<'a, f32, $space>,
                eps: f32,
                out: impl Output<'a, E4m3, $space>,
            ) -> Result<()> {
                let sink = AwqFp8 { inv_s, act_scale, out };
                self.run($($stream,)? x, modulation, eps, sink)
            }

            /// AdaLN to NVFP4: packed e2m1 codes `[R, D/2]` and block scales in the 128x4 layout.
            ///
            /// ```
            /// use adaptive_layernorm_producers::formats::{swizzled_sf_size, unpack_nvfp4};
            /// use adaptive_layernorm_producers::{Broadcast, Cpu, Matrix, Nvfp4, Nvfp4Recipe, bf16};
            /// let x: Vec<bf16> = (0..16).map(|i| bf16::from_f32(if i % 2 == 0 { -1.0 } else { 1.0 })).collect();
            /// let (scale, shift) = (vec![bf16::from_f32(5.0); 16], vec![bf16::ZERO; 16]);
            /// let (mut packed, mut scales) = (vec![0; 8], vec![0; swizzled_sf_size(1, 16).unwrap()]);
            /// let sink = Nvfp4::new(Nvfp4Recipe::TransformerEngine, &mut packed, &mut scales);
            /// let modulation = Broadcast { scale: &scale, shift: &shift };
            /// Cpu.ada_layer_norm_quant_nvfp4_swizzled_bf16(Matrix::new(&x, 1, 16), modulation, 1e-5, sink)?;
            /// assert_eq!(unpack_nvfp4(&packed, &scales, 1, 16, None)?[..2], [-6.0, 6.0]); // ±1 · (1 + 5)
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn ada_layer_norm_quant_nvfp4_swizzled_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                modulation: Broadcast<impl Input<'a, bf16, $space>>,
                eps: f32,
                sink: Nvfp4<impl Output<'a, u8, $space>, impl Output<'a, u8, $space>, impl OptionalInput<'a, f32, $space>>,
            ) -> Result<()> {
                self.run($($stream,)? x, modulation, eps, sink)
            }

            /// AdaLN to NVFP4 with scale and shift `[D]` in FP8.
            ///
            /// ```
            /// use adaptive_layernorm_producers::formats::unpack_nvfp4;
            /// use adaptive_layernorm_producers::{BroadcastFp8, Cpu, E4m3, Matrix, Nvfp4, Nvfp4Recipe, bf16};
            /// let x: Vec<bf16> = (0..16).map(|i| bf16::from_f32(if i % 2 == 0 { -1.0 } else { 1.0 })).collect();
            /// let (scale, shift) = (vec![E4m3::from_f32(1.0); 16], vec![E4m3::default(); 16]);
            /// let (mut packed, mut scales) = (vec![0; 8], vec![0; 512]);
            /// let modulation = BroadcastFp8 { scale: &scale, shift: &shift, scale_deq: &[5.0], shift_deq: &[1.0] };
            /// let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm110, &mut packed, &mut scales);
            /// Cpu.ada_layer_norm_quant_nvfp4_swizzled_modfp8_bf16(Matrix::new(&x, 1, 16), modulation, 1e-5, sink)?;
            /// assert_eq!(unpack_nvfp4(&packed, &scales, 1, 16, None)?[..2], [-6.0, 6.0]);
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn ada_layer_norm_quant_nvfp4_swizzled_modfp8_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                modulation: BroadcastFp8<impl Input<'a, E4m3, $space>, impl Input<'a, f32, $space>>,
                eps: f32,
                sink: Nvfp4<impl Output<'a, u8, $space>, impl Output<'a, u8, $space>, impl OptionalInput<'a, f32, $space>>,
            ) -> Result<()> {
                self.run($($stream,)? x, modulation, eps, sink)
            }

            /// AdaLN to NVFP4 with scale and shift from a table `[C, D]` plus an embedding `[R, C, D]`.
            ///
            /// ```
            /// use adaptive_layernorm_producers::formats::unpack_nvfp4;
            /// use adaptive_layernorm_producers::{Cpu, Matrix, Nvfp4, Nvfp4Recipe, PerTokenTable, bf16};
            /// let x: Vec<bf16> = (0..16).map(|i| bf16::from_f32(if i % 2 == 0 { -1.0 } else { 1.0 })).collect();
            /// let (temb, table) = (vec![bf16::ZERO; 32], [[0.0; 16], [5.0; 16]].concat());
            /// let (mut packed, mut scales) = (vec![0; 8], vec![0; 512]);
            /// let modulation = PerTokenTable { temb: &temb, table: &table, shift_idx: 0, scale_idx: 1 };
            /// let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm120, &mut packed, &mut scales);
            /// Cpu.ada_layer_norm_quant_nvfp4_swizzled_ptok_table_bf16(Matrix::new(&x, 1, 16), modulation, 1e-5, sink)?;
            /// assert_eq!(unpack_nvfp4(&packed, &scales, 1, 16, None)?[..2], [-6.0, 6.0]);
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn ada_layer_norm_quant_nvfp4_swizzled_ptok_table_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                modulation: PerTokenTable<impl Input<'a, bf16, $space>, impl Input<'a, f32, $space>>,
                eps: f32,
                sink: Nvfp4<impl Output<'a, u8, $space>, impl Output<'a, u8, $space>, impl OptionalInput<'a, f32, $space>>,
            ) -> Result<()> {
                self.run($($stream,)? x, modulation, eps, sink)
            }

            /// Plain LayerNorm to FP8.
            ///
            /// ```
            /// use adaptive_layernorm_producers::{Cpu, E4m3, Matrix, bf16};
            /// let x = [-3.0, 3.0].map(bf16::from_f32);
            /// let mut out = [E4m3::default(); 2];
            /// Cpu.layer_norm_no_affine_quant_fp8_static_bf16(Matrix::new(&x, 1, 2), &[0.5], 1e-5, &mut out)?;
            /// assert_eq!(out.map(E4m3::to_f32), [-2.0, 2.0]);
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn layer_norm_no_affine_quant_fp8_static_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                act_scale: impl Input<'a, f32, $space>,
                eps: f32,
                out: impl Output<'a, E4m3, $space>,
            ) -> Result<()> {
                self.run($($stream,)? x, NoAffine, eps, Fp8 { act_scale, out })
            }

            /// Plain LayerNorm to NVFP4.
            ///
            /// ```
            /// use adaptive_layernorm_producers::{Cpu, Matrix, Nvfp4, Nvfp4Recipe, bf16};
            /// let x: Vec<bf16> = (0..16).map(|i| bf16::from_f32(if i % 2 == 0 { -1.0 } else { 1.0 })).collect();
            /// let (mut packed, mut scales) = (vec![0; 8], vec![0; 512]);
            /// let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm110, &mut packed, &mut scales);
            /// Cpu.layer_norm_no_affine_quant_nvfp4_swizzled_bf16(Matrix::new(&x, 1, 16), 1e-5, sink)?;
            /// assert_eq!((packed[0], scales[0]), (0x7f, 0x23)); // -6 and 6 times 0.171875, the e4m3 nearest to 1/6
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn layer_norm_no_affine_quant_nvfp4_swizzled_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                eps: f32,
                sink: Nvfp4<impl Output<'a, u8, $space>, impl Output<'a, u8, $space>, impl OptionalInput<'a, f32, $space>>,
            ) -> Result<()> {
                self.run($($stream,)? x, NoAffine, eps, sink)
            }

            /// AdaLN in bf16 with scale and shift from a table `[C, D]` plus an embedding `[R, C, D]`: the fused form's first half.
            ///
            /// ```
            /// use adaptive_layernorm_producers::{Cpu, Matrix, PerTokenTable, bf16};
            /// let x = [-1.0, 1.0].map(bf16::from_f32);
            /// let mut out = [bf16::ZERO; 2];
            /// let modulation = PerTokenTable { temb: &[bf16::ZERO; 4], table: &[0.5, 0.5, 2.0, 2.0], shift_idx: 0, scale_idx: 1 };
            /// Cpu.ada_layer_norm_ptok_table_bf16(Matrix::new(&x, 1, 2), modulation, 1e-5, &mut out)?;
            /// assert_eq!(out.map(bf16::to_f32), [-2.5, 3.5]);
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run`.
            pub fn ada_layer_norm_ptok_table_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                x: Matrix<impl Input<'a, bf16, $space>>,
                modulation: PerTokenTable<impl Input<'a, bf16, $space>, impl Input<'a, f32, $space>>,
                eps: f32,
                out: impl Output<'a, bf16, $space>,
            ) -> Result<()> {
                self.run($($stream,)? x, modulation, eps, Bf16 { out })
            }

            /// The six-way modulation: `out_k = bf16(adaln_params[.., k, ..] + layer_modulation[k])`.
            ///
            /// adaln_params is f32 `[B, S, 6, D]`, layer_modulation f32 `[6, D]`, each output bf16 `[B, S, D]`, any D from 1.
            ///
            /// ```
            /// use adaptive_layernorm_producers::{Cpu, bf16};
            /// let params = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]; // B = S = D = 1
            /// let mut out = [[bf16::ZERO]; 6];
            /// Cpu.adaln_modulation6_bf16(&params, &[0.5; 6], out.each_mut())?;
            /// assert_eq!(out[5][0].to_f32(), 5.5);
            /// # Ok::<(), adaptive_layernorm_producers::Error>(())
            /// ```
            ///
            /// # Errors
            /// As `run_six_way`.
            pub fn adaln_modulation6_bf16<'a>(
                &self,
                $($stream: $stream_type,)?
                adaln_params: impl Input<'a, f32, $space>,
                layer_modulation: impl Input<'a, f32, $space>,
                out: [impl Output<'a, bf16, $space>; 6],
            ) -> Result<()> {
                self.run_six_way($($stream,)? SixWay {
                    adaln_params: adaln_params.view(),
                    layer_modulation: layer_modulation.view(),
                    out: out.map(Output::view),
                })
            }
        }
    };
}

pub(crate) use operator_methods;
