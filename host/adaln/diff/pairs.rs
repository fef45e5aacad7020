//! Which tensors of two files belong together.
use super::{Args, Compared};
use crate::difference::Kind;
use crate::failure::{Failure, Outcome};
use crate::tensor_file::TensorFile;
use adaptive_layernorm_producers::Operator;
use adaptive_layernorm_producers::compare::{self, Nvfp4Output};
use adaptive_layernorm_producers::named::{Data, Tensor};

/// Two tensors that are compared.
pub type Both<'a> = (&'a Tensor, &'a Tensor);

/// Names in the first and the second file.
type Names = (String, String);

/// An output in both files.
pub struct Pair {
    /// What it is called in the report: its name in the first file.
    pub name: String,
    values: Names,
    /// The scale bytes of NVFP4.
    scales: Option<Names>,
}

/// Whether operators read a tensor of this name: then a file is likely one that `adaln run` reads, not one that it writes.
pub fn is_operand(name: &str) -> bool {
    Operator::ALL.into_iter().any(|operator| operator.inputs().any(|spec| spec.name == name))
}

/// Reads `X=Y`.
pub fn names(text: &str) -> Result<Names, String> {
    match text.split_once('=') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() => Ok((a.to_owned(), b.to_owned())),
        _ => Err("expected X=Y, a tensor of the first file and one of the second".to_owned()),
    }
}

/// The pairs, and tensors of the first file that are left out.
pub fn all(args: &Args, expected: &TensorFile, got: &TensorFile) -> Outcome<(Vec<Pair>, Vec<String>)> {
    let named: Vec<Names> = if args.pair.is_empty() { same_names(args, expected, got)? } else { args.pair.clone() };
    let (mut pairs, mut others) = (Vec::new(), Vec::new());
    for names in named.iter().filter(|names| !is_scales(&names.0)) {
        let partner = scales_name(&names.0);
        let scales = partner.and_then(|scales| named.iter().find(|names| scales.contains(&names.0))).cloned();
        let is_codes = scales_name(&names.0).is_some();
        match expected.dtype(&names.0)? {
            Ok(_) if is_codes == scales.is_some() => {
                pairs.push(Pair { name: names.0.clone(), values: names.clone(), scales });
            }
            _ => others.push(names.0.clone()),
        }
    }
    if pairs.is_empty() {
        return Err(Failure::input(
            "the files have no outputs in common; name some with --pair X=Y, and NVFP4 codes together with their scales",
        ));
    }
    Ok((pairs, others))
}

/// Every name, which both files must have.
fn same_names(args: &Args, expected: &TensorFile, got: &TensorFile) -> Outcome<Vec<Names>> {
    let missing = |name: &String, path: &std::path::Path| {
        let operands = [(&args.expected, expected), (&args.got, got)].into_iter().find_map(|(path, file)| {
            let operand = file.names().into_iter().find(|name| is_operand(name))?;
            Some(format!("{} holds operands such as {operand}: give files of outputs, or ", path.display()))
        });
        let (path, operands) = (path.display(), operands.unwrap_or_default());
        Failure::input(format!("{path} has no tensor {name}; {operands}name the tensors to compare with --pair X=Y"))
    };
    if let Some(name) = got.names().iter().find(|name| !expected.has(name)) {
        return Err(missing(name, &args.expected));
    }
    if let Some(name) = expected.names().iter().find(|name| !got.has(name)) {
        return Err(missing(name, &args.got));
    }
    Ok(expected.names().into_iter().map(|name| (name.clone(), name)).collect())
}

/// The names that the scales of packed codes may have.
fn scales_name(name: &str) -> Option<[String; 2]> {
    let stem = name.strip_suffix("packed")?;
    Some(["sf_swizzled", "sf"].map(|suffix| format!("{stem}{suffix}")))
}

fn is_scales(name: &str) -> bool {
    name.ends_with("sf_swizzled") || name.ends_with(".sf") || name == "sf"
}

impl Pair {
    /// Reads both sides and compares them; says also whether they agree as the contract asks of the original.
    pub fn compare(&self, expected: &mut TensorFile, got: &mut TensorFile) -> Outcome<(Vec<Compared>, bool)> {
        let (a, b) = self.read(&self.values, expected, got)?;
        let Some(scales) = &self.scales else { return self.values((&a, &b)) };
        let (scales_a, scales_b) = self.read(scales, expected, got)?;
        self.nvfp4((&a, &b), (&scales_a, &scales_b))
    }

    /// Two tensors of the same type and shape.
    fn read(&self, names: &Names, expected: &mut TensorFile, got: &mut TensorFile) -> Outcome<(Tensor, Tensor)> {
        let (a, b) = (expected.read(&names.0)?, got.read(&names.1)?);
        let what = |tensor: &Tensor| format!("{} {:?}", tensor.data.dtype(), tensor.shape);
        if a.data.dtype() != b.data.dtype() || a.shape != b.shape {
            let (a, b) = (what(&a), what(&b));
            return Err(Failure::input(format!("{} is {a} and {} is {b}, expected the same", names.0, names.1)));
        }
        Ok((a, b))
    }

    fn values(&self, (a, b): Both<'_>) -> Outcome<(Vec<Compared>, bool)> {
        let report = match (&a.data, &b.data) {
            (Data::E4m3(a), Data::E4m3(b)) => compare::fp8(a, b)?,
            (Data::Bf16(a), Data::Bf16(b)) => compare::bf16(a, b)?,
            _ => {
                let dtype = a.data.dtype();
                let remedy = if is_operand(&self.name) { "it is an operand: give files of outputs, or " } else { "" };
                return Err(Failure::input(format!(
                    "{} is {dtype}, expected e4m3, bf16 or NVFP4; {remedy}name the tensors to compare with --pair X=Y",
                    self.name
                )));
            }
        };
        let kind = Kind::Values { dim: a.shape.last().copied().unwrap_or(1) };
        let part = a.data.dtype().name();
        Ok((vec![Compared::new(&self.name, part, kind, (a, b), report)], report.agrees_with_original()))
    }

    fn nvfp4(&self, codes: Both<'_>, scales: Both<'_>) -> Outcome<(Vec<Compared>, bool)> {
        let (half, leading) = codes.0.shape.split_last().unwrap_or((&0, &[]));
        // A file without a byte of data may have any axes as long as one of them is 0.
        let size = |axes: &[usize], times: usize| {
            let product = axes.iter().try_fold(times, |product, axis| product.checked_mul(*axis));
            let fits = product.and_then(|product| u32::try_from(product).ok());
            fits.ok_or_else(|| Failure::input(format!("{}: shape {:?} is too large", self.name, codes.0.shape)))
        };
        let (rows, dim) = (size(leading, 1)?, size(&[*half], 2)?);
        let side = |codes, scales| -> Outcome<Nvfp4Output<'_>> {
            Ok(Nvfp4Output { packed: self.bytes(codes)?, sf_swizzled: self.bytes(scales)? })
        };
        let (a, b) = (side(codes.0, scales.0)?, side(codes.1, scales.1)?);
        let report = compare::nvfp4(a, b, rows, dim)?;
        let (rows, dim) = (rows as usize, dim as usize);
        let scales_name = self.scales.as_ref().map_or("", |names| names.0.as_str());
        let compared = vec![
            Compared::new(&self.name, "e2m1", Kind::Codes { dim }, codes, report.codes),
            Compared::new(scales_name, "block scale", Kind::Scales { rows, dim }, scales, report.scales),
        ];
        Ok((compared, report.agrees_with_original()))
    }

    fn bytes<'a>(&self, tensor: &'a Tensor) -> Outcome<&'a [u8]> {
        match &tensor.data {
            Data::U8(bytes) => Ok(bytes),
            other => Err(Failure::input(format!("{}: codes or scales are {}, expected u8", self.name, other.dtype()))),
        }
    }
}
