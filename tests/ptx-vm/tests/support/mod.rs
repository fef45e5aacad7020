//! What the tests share: kernels around one piece of PTX, values worth trying, and arithmetic with rationals.
#![allow(dead_code, reason = "every test program uses a part of it")]

pub mod exact;
pub mod values;

use std::hash::{Hash, Hasher};

use ptx_vm::{Fault, FaultKind, Launch, LaunchError, Memory, Module};

/// A kernel that applies a piece of PTX to a list of inputs, one thread each.
pub struct Snippet {
    /// The module's text; its entry is `snippet`.
    pub ptx: String,
    inputs: usize,
}

impl Snippet {
    /// `types` are the register types of the inputs `%a0`, `%a1`, ..; `result` that of `%d`; `b8` and `pred` are fine.
    /// Inputs and results travel as 64-bit words.
    pub fn new(types: &[&str], result: &str, body: &str) -> Self {
        let mut ptx = String::from(
            ".version 9.0\n.target sm_110a\n.address_size 64\n.visible .entry snippet(.param .u64 in, .param .u64 out, .param .u32 n)\n{\n\
             .reg .pred %done, %pt;\n.reg .b32 %ux, %vx, %wx, %count;\n.reg .b64 %in, %out, %at, %wide;\n.reg .b16 %narrow;\n\
             .reg .b16 %t16a, %t16b;\n.reg .b32 %t32a, %t32b, %t32c;\n.reg .b64 %t64a, %t64b;\n.reg .pred %p, %q;\n",
        );
        for (index, ty) in types.iter().enumerate() {
            ptx += &format!(".reg .{ty} %a{index};\n");
        }
        ptx += &format!(
            ".reg .{result} %d;\nmov.u32 %ux, %tid.x;\nmov.u32 %vx, %ctaid.x;\nmov.u32 %wx, %ntid.x;\nmad.lo.u32 %ux, %vx, %wx, %ux;\n\
             ld.param.u32 %count, [n];\nsetp.ge.u32 %done, %ux, %count;\n@%done bra END;\n\
             ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmul.wide.u32 %at, %ux, 8;\nadd.u64 %out, %out, %at;\n\
             mul.lo.u64 %at, %at, {};\nadd.u64 %in, %in, %at;\n",
            types.len()
        );
        for (index, ty) in types.iter().enumerate() {
            ptx += &load(ty, index);
        }
        ptx += body;
        ptx += "\n";
        ptx += store(result);
        ptx += "END:\nret;\n}\n";
        Self { ptx, inputs: types.len() }
    }

    /// The results for these inputs.
    pub fn try_run(&self, inputs: &[Vec<u64>]) -> Result<Vec<u64>, LaunchError> {
        let module = parsed(&self.ptx);
        let words: Vec<u64> = inputs
            .iter()
            .flat_map(|case| {
                assert_eq!(case.len(), self.inputs, "inputs per case");
                case.iter().copied()
            })
            .collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        dump(&self.ptx, "in", &bytes);
        let mut memory = Memory::new();
        let (input, output) = (memory.input(bytes), memory.output(8 * inputs.len(), 0xEE));
        let count = u32::try_from(inputs.len()).expect("few inputs");
        Launch::new(&module, "snippet")
            .grid(count.div_ceil(128))
            .block(128)
            .arg(input)
            .arg(output)
            .arg(count)
            .run(&mut memory)?;
        memory.check_written(output).expect("every thread writes its result");
        dump(&self.ptx, "out", memory.bytes(output));
        Ok(memory
            .bytes(output)
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
            .collect())
    }

    /// As `try_run`, for inputs that must succeed.
    pub fn run(&self, inputs: &[Vec<u64>]) -> Vec<u64> {
        self.try_run(inputs).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Fails with the input where the result is not what `expected` says.
    pub fn agrees(&self, inputs: &[Vec<u64>], expected: impl Fn(&[u64]) -> u64) {
        for (input, got) in inputs.iter().zip(self.run(inputs)) {
            let want = expected(input);
            assert_eq!(got, want, "inputs {input:x?}: got {got:#x}, want {want:#x}");
        }
    }
}

fn load(ty: &str, index: usize) -> String {
    let at = 8 * index;
    match ty {
        "pred" => format!("ld.global.b64 %wide, [%in+{at}];\nsetp.ne.b64 %a{index}, %wide, 0;\n"),
        "b8" => format!("ld.global.b8 %a{index}, [%in+{at}];\n"),
        _ => format!("ld.global.b{} %a{index}, [%in+{at}];\n", &ty[1..]),
    }
}

/// Results are stored zero-extended.
fn store(ty: &str) -> &'static str {
    match ty {
        "pred" => "selp.b64 %wide, 1, 0, %d;\nst.global.b64 [%out], %wide;\n",
        "b8" => {
            "mov.b16 %narrow, {%d, %d};\nand.b16 %narrow, %narrow, 255;\ncvt.u64.u16 %wide, %narrow;\nst.global.b64 [%out], %wide;\n"
        }
        "b16" => "cvt.u64.u16 %wide, %d;\nst.global.b64 [%out], %wide;\n",
        "b32" => "cvt.u64.u32 %wide, %d;\nst.global.b64 [%out], %wide;\n",
        _ => "st.global.b64 [%out], %d;\n",
    }
}

/// One result for one list of inputs.
pub fn one(types: &[&str], result: &str, body: &str, inputs: &[u64]) -> u64 {
    Snippet::new(types, result, body).run(&[inputs.to_vec()])[0]
}

/// A module around the body of an entry `k` with parameters `p0`, `p1`, .. of 64 bits.
pub fn module(parameters: usize, body: &str) -> String {
    let list: Vec<String> = (0..parameters).map(|index| format!(".param .u64 p{index}")).collect();
    format!(
        ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry k({})\n{{\n.reg .pred %p<8>;\n.reg .b16 %rs<8>;\n\
         .reg .b32 %r<32>;\n.reg .b64 %rd<32>;\n{body}\n}}\n",
        list.join(", ")
    )
}

/// Parses what must parse. The text is also dumped, for an assembler to judge.
pub fn parsed(text: &str) -> Module {
    dump(text, "ptx", text.as_bytes());
    Module::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// With `PTX_VM_DUMP` set to a folder, writes a file that belongs to a module there.
fn dump(text: &str, extension: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("PTX_VM_DUMP") {
        let mut hasher = std::hash::DefaultHasher::new();
        text.hash(&mut hasher);
        let file = std::path::Path::new(&folder).join(format!("{:016x}.{extension}", hasher.finish()));
        std::fs::write(file, bytes).expect("PTX_VM_DUMP names a folder");
    }
}

/// The fault of a launch that must fault.
pub fn fault(result: Result<ptx_vm::Report, LaunchError>) -> Fault {
    match result {
        Err(LaunchError::Fault(fault)) => *fault,
        other => panic!("a fault expected, got {other:?}"),
    }
}

/// The kind of that fault.
pub fn kind(result: Result<ptx_vm::Report, LaunchError>) -> FaultKind {
    fault(result).kind
}
