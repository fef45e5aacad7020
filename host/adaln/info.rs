//! `adaln info`: what is shipped, what is here, what would run.
use crate::failure::Outcome;
use crate::table::{self, Cell, Column, Format, FormatArgs, Table};
use crate::ui::{self, Ui};
use adaptive_layernorm_producers::contract::CONTRACT_VERSION;
use adaptive_layernorm_producers::images::{IMAGES, ImageKind};
use serde::Serialize;

/// Show the kernel images shipped, the GPU found, and the image chosen for it
#[derive(Debug, clap::Args)]
pub struct Args {
    /// One line for each kernel: registers, shared and local memory, spills
    #[arg(long)]
    entries: bool,
    #[command(flatten)]
    format: FormatArgs,
}

const IMAGE_COLUMNS: &[Column] = &[
    Column("image", "target"),
    Column("kind", "kind"),
    Column("PTX", "ptx_version"),
    Column("CUDA", "toolkit"),
    Column("bytes", "bytes"),
    Column("packed", "packed_bytes"),
    Column("entries", "entries"),
    Column("registers", "max_registers"),
    Column("spills", "spills"),
    Column("sha256", "sha256"),
];

const ENTRY_COLUMNS: &[Column] = &[
    Column("image", "target"),
    Column("entry", "entry"),
    Column("registers", "registers"),
    Column("shared", "shared"),
    Column("local", "local"),
    Column("spills", "spills"),
];

/// The GPU of this machine, as far as this build can see it.
#[derive(Debug, Serialize)]
pub struct Gpu {
    /// What the driver calls it.
    pub name: String,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of the L2 cache.
    pub l2_bytes: u32,
    /// CUDA version of the driver.
    pub driver: (u32, u32),
}

/// Everything, for programs.
#[derive(Serialize)]
struct Info {
    version: &'static str,
    contract_version: u32,
    gpu: Option<Gpu>,
    chosen: Option<String>,
    note: Option<String>,
    images: Table,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Table>,
}

/// Prints it.
pub fn run(args: &Args, ui: Ui) -> Outcome {
    let (gpu, chosen, note) = gpu();
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        contract_version: CONTRACT_VERSION,
        gpu,
        chosen,
        note,
        images: images(),
        entries: args.entries.then(entries),
    };
    match args.format.format {
        Format::Json => ui::print(&table::json(&info)?),
        format @ (Format::Csv | Format::Markdown) => info.entries.unwrap_or(info.images).print(format),
        Format::Table => people(&info, ui),
    }
}

fn people(info: &Info, ui: Ui) -> Outcome {
    ui::print(&format!("adaln {}, byte contract {}\n", info.version, info.contract_version))?;
    if let Some(Gpu { name, capability, multiprocessors, l2_bytes, driver }) = &info.gpu {
        ui::print(&format!(
            "GPU: {name}, compute capability {}.{}, {multiprocessors} multiprocessors, {} MiB of L2, driver CUDA {}.{}\n",
            capability.0,
            capability.1,
            l2_bytes >> 20,
            driver.0,
            driver.1
        ))?;
    }
    if let Some(chosen) = &info.chosen {
        ui::print(&format!("image chosen: {chosen}\n"))?;
    }
    if let Some(note) = &info.note {
        ui::print(&format!("{note}\n"))?;
    }
    if IMAGES.is_empty() {
        ui.note("no kernel images are in this build; `cargo kernels` makes them");
        return Ok(());
    }
    ui::print("\n")?;
    info.images.print(Format::Table)?;
    info.entries.as_ref().map_or(Ok(()), |entries| {
        ui::print("\n")?;
        entries.print(Format::Table)
    })
}

/// GPU, image chosen, and what stands in the way of either.
#[cfg(feature = "cuda")]
fn gpu() -> (Option<Gpu>, Option<String>, Option<String>) {
    use adaptive_layernorm_producers::images::select;
    match crate::cuda::probe() {
        Ok(gpu) => match select(gpu.capability, gpu.driver) {
            Ok(image) => (Some(gpu), Some(image.to_string()), None),
            Err(error) => (Some(gpu), None, Some(error.to_string())),
        },
        Err(failure) => (None, None, Some(failure.to_string())),
    }
}

#[cfg(not(feature = "cuda"))]
fn gpu() -> (Option<Gpu>, Option<String>, Option<String>) {
    (None, None, Some("no GPU was looked for: this build cannot use one (build with `--features cuda`)".to_owned()))
}

fn images() -> Table {
    let mut table = Table::new(IMAGE_COLUMNS);
    for image in IMAGES {
        let version = |(major, minor): (u32, u32)| Cell::text(format!("{major}.{minor}"));
        let kind = match image.kind {
            ImageKind::Ptx => "PTX",
            ImageKind::Cubin => "cubin",
        };
        let registers = image.entries.iter().map(|entry| entry.registers).max().unwrap_or(0);
        let spills: u32 = image.entries.iter().map(|entry| entry.spills).sum();
        table.push([
            Cell::text(image.target),
            Cell::text(kind),
            version(image.ptx_version),
            version(image.toolkit),
            Cell::integer(image.bytes),
            Cell::integer(image.packed.len()),
            Cell::integer(image.entries.len()),
            Cell::Integer(registers.into()),
            Cell::Integer(spills.into()),
            Cell::Digest(image.sha256),
        ]);
    }
    table
}

fn entries() -> Table {
    let mut table = Table::new(ENTRY_COLUMNS);
    for image in IMAGES {
        for entry in image.entries {
            let numbers = [entry.registers, entry.shared, entry.local, entry.spills];
            let numbers = numbers.map(|number| Cell::Integer(number.into()));
            table.push([vec![Cell::text(image.target), Cell::text(entry.name)], numbers.to_vec()].concat());
        }
    }
    table
}
