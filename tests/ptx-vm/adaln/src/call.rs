//! A call of an operator in the machine: operands as buffers, arguments as the bytes of contract::abi.

use std::collections::BTreeMap;

use adaptive_layernorm_producers::contract::abi::{Modulation6Arguments, RowArguments};
use adaptive_layernorm_producers::contract::swizzle;
use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::{OperandSpec, SinkKind};
use adaptive_layernorm_producers::{Error, Result};
use ptx_vm::{Buffer, Handle, Launch, Memory, Module, Schedule};

use crate::launches::{Alignment, Entry};

/// What outputs hold before the launch: a NaN of every format.
const POISON: u8 = 0xFF;

/// A call and its operands.
#[derive(Clone, Copy, Debug)]
pub struct VmCall<'a> {
    /// The operator and its parameters.
    pub call: Call,
    /// Its inputs.
    pub inputs: &'a Tensors,
    /// Tensors of the outputs' names, types and shapes.
    pub like: &'a Tensors,
    /// Where operands begin.
    pub alignment: Alignment,
    /// The order of threads.
    pub schedule: Schedule,
}

/// Runs an entry and gives the outputs.
///
/// # Errors
/// As [`Call::sizes`]; [`Error::Missing`] for an output that is not in `like`; [`Error::Backend`] says what the machine found wrong.
pub fn run(module: &Module, entry: &Entry, call: &VmCall<'_>) -> Result<Tensors> {
    let operator = call.call.operator;
    let report = |message: String| Error::Backend { operator, message };
    let mut memory = Memory::new();
    let handles = operands(call, &mut memory)?;
    let launch = Launch::new(module, &entry.name)
        .grid(entry.grid)
        .block(entry.block)
        .dynamic_shared(entry.shared_bytes)
        .arg(arguments(call, &handles, entry.team)?)
        .schedule(call.schedule);
    launch.run(&mut memory).map_err(|error| report(error.to_string()))?;
    let mut outputs = Tensors::new();
    for spec in operator.outputs() {
        let (like, handle) = (output(call, spec)?, handles[spec.name]);
        memory.check_written(handle).map_err(|unwritten| report(format!("{}: {unwritten}", spec.name)))?;
        let data = Data::from_le_bytes(like.data.dtype(), memory.bytes(handle));
        outputs.insert(spec.name.to_owned(), Tensor::new(like.shape.clone(), data));
    }
    Ok(outputs)
}

/// The tensor that an output looks like.
fn output<'a>(call: &VmCall<'a>, spec: &OperandSpec) -> Result<&'a Tensor> {
    let operator = call.call.operator;
    call.like.get(spec.name).ok_or(Error::Missing { operator, operand: spec.name, expected: spec.dtype })
}

/// Inputs and outputs as buffers, by name.
fn operands(call: &VmCall<'_>, memory: &mut Memory) -> Result<BTreeMap<&'static str, Handle>> {
    let mut handles = BTreeMap::new();
    let alignment = |spec: &OperandSpec| call.alignment.of(&call.call, spec);
    for spec in call.call.operator.inputs() {
        if let Some(tensor) = call.inputs.get(spec.name) {
            let buffer = Buffer::input(tensor.data.to_le_bytes()).with_alignment(alignment(spec));
            handles.insert(spec.name, memory.add(buffer));
        }
    }
    for spec in call.call.operator.outputs() {
        let bytes = output(call, spec)?.data.to_le_bytes().len();
        handles.insert(spec.name, memory.add(Buffer::output(bytes, POISON).with_alignment(alignment(spec))));
    }
    Ok(handles)
}

/// The one argument of an entry.
fn arguments(call: &VmCall<'_>, handles: &BTreeMap<&str, Handle>, team: u32) -> Result<Vec<u8>> {
    let address = |name: &str| handles.get(name).map_or(0, |handle| handle.address());
    let sizes = call.call.sizes(call.inputs)?;
    if call.call.operator.sink() == SinkKind::SixBf16 {
        return Ok(six_way_bytes(&Modulation6Arguments {
            params: address("adaln_params"),
            modulation: address("layer_modulation"),
            out: ["out0", "out1", "out2", "out3", "out4", "out5"].map(address),
            rows: sizes.rows,
            dim: sizes.dim,
        }));
    }
    // An operator has one of the operands that share a field.
    let one_of = |names: &[&str]| names.iter().map(|name| address(name)).find(|address| *address != 0).unwrap_or(0);
    Ok(row_bytes(&RowArguments {
        x: address("x"),
        scale: one_of(&["scale", "scale_fp8", "temb"]),
        shift: one_of(&["shift", "shift_fp8"]),
        table: address("table"),
        scale_deq: address("scale_deq"),
        shift_deq: address("shift_deq"),
        inv_s: address("inv_s"),
        sink_scale: one_of(&["act_scale", "global_scale"]),
        out: one_of(&["out", "packed"]),
        block_scales: address("sf_swizzled"),
        rows: sizes.rows,
        dim: sizes.dim,
        table_chunks: sizes.chunks,
        shift_idx: call.call.shift_idx,
        scale_idx: call.call.scale_idx,
        eps: call.call.eps,
        #[allow(clippy::cast_precision_loss, reason = "D is at most 2^24")]
        inv_dim: 1.0 / sizes.dim as f32,
        column_groups: swizzle::column_groups(sizes.dim),
        team,
    }))
}

// Ten addresses and nine words, eight addresses and two words: below, no field is missing.
const _: () = assert!(size_of::<RowArguments>() == (10 * 8 + 9 * 4usize).next_multiple_of(8));
const _: () = assert!(size_of::<Modulation6Arguments>() == 8 * 8 + 2 * 4);

/// The bytes as `repr(C)` lays them out: words without gaps, then a tail up to the alignment.
fn row_bytes(a: &RowArguments) -> Vec<u8> {
    let addresses =
        [a.x, a.scale, a.shift, a.table, a.scale_deq, a.shift_deq, a.inv_s, a.sink_scale, a.out, a.block_scales];
    let RowArguments { rows, dim, table_chunks, shift_idx, scale_idx, eps, inv_dim, column_groups, team, .. } = *a;
    let (eps, inv_dim) = (eps.to_bits(), inv_dim.to_bits());
    laid_out(&addresses, &[rows, dim, table_chunks, shift_idx, scale_idx, eps, inv_dim, column_groups, team])
}

fn six_way_bytes(a: &Modulation6Arguments) -> Vec<u8> {
    laid_out(&[[a.params, a.modulation].as_slice(), &a.out].concat(), &[a.rows, a.dim])
}

fn laid_out(addresses: &[u64], words: &[u32]) -> Vec<u8> {
    let addresses = addresses.iter().flat_map(|address| address.to_le_bytes());
    let mut bytes: Vec<u8> = addresses.chain(words.iter().flat_map(|word| word.to_le_bytes())).collect();
    bytes.resize(bytes.len().next_multiple_of(align_of::<u64>()), 0);
    bytes
}
