//! The virtual machine as a backend of the program: the package `adaln-vm` of the repository has it.
use crate::backend::{Engine, Measured, Which};
use crate::failure::{Failure, Outcome};
use adaln_vm::Machine;
use adaptive_layernorm_producers::images::{IMAGES, Image};
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Nvfp4Recipe, Result};
use std::time::{Duration, Instant};

/// The PTX of one target in the virtual machine.
pub struct PtxVm(Machine);

impl PtxVm {
    /// Makes a target's kernels ready.
    pub fn open(target: &str) -> Outcome<Self> {
        Machine::open(target).map(Self).map_err(|error| Failure::input(error.to_string()))
    }
}

impl Engine for PtxVm {
    fn name(&self) -> &'static str {
        "ptx-vm"
    }

    fn description(&self) -> String {
        format!("ptx-vm, PTX {} for {}, every access checked", self.0.version(), self.0.target())
    }

    fn native_recipe(&self) -> Nvfp4Recipe {
        let image = IMAGES.iter().find(|image| image.target == self.0.target());
        Nvfp4Recipe::native_to(image.map_or((0, 0), Image::capability))
    }

    fn run_into(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Result<()> {
        self.0.run_into(call, inputs, outputs)
    }

    /// What the machine takes, not what a GPU would.
    fn time(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Outcome<Duration> {
        let begin = Instant::now();
        self.run_into(call, inputs, outputs)?;
        Ok(begin.elapsed())
    }

    /// Nothing: `adaln bench` does not open this backend.
    fn measure(&self, _: &Call, _: &Tensors, _: &mut Tensors, _: Which) -> Outcome<Vec<Measured>> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::ui::Ui;
    use adaln_vm::images;
    use adaptive_layernorm_producers::Operator;
    use adaptive_layernorm_producers::named::{Data, Tensor};

    const OPERATOR: Operator = Operator::AdalnModulation6Bf16;
    const ANY: &str = "adaln_modulation6_bf16__any";

    /// The kernels of sm_110a with one change of an entry.
    fn changed(entry: &str, from: &str, to: &str) -> PtxVm {
        let text = images::text("sm_110a").unwrap();
        let (before, rest) = text.split_at(text.find(&format!(".entry {entry}(")).unwrap());
        PtxVm(Machine::new(format!("{before}{}", rest.replacen(from, to, 1))).unwrap())
    }

    /// One row of three columns, so that the entry for any D runs.
    fn outcome(engine: &PtxVm) -> Outcome<Tensors> {
        let call = Call::new(OPERATOR);
        let inputs = [("adaln_params", vec![1, 6, 3]), ("layer_modulation", vec![6, 3])];
        let inputs = inputs.map(|(name, shape)| (name.to_owned(), Tensor::new(shape, vec![1.0f32; 18]))).into();
        let mut outputs = call.allocate(&inputs)?;
        engine.run_into(&call, &inputs, &mut outputs)?;
        Ok(outputs)
    }

    /// What the machine says of a changed kernel: one line, and not that the user did something wrong.
    fn fault(engine: &PtxVm) -> String {
        match outcome(engine) {
            Err(Failure::Check(fault)) if fault.lines().count() == 1 => fault,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_right_kernel_runs() {
        let two = vec![adaptive_layernorm_producers::bf16::from_f32(2.0); 3];
        for output in outcome(&PtxVm::open("sm_110a").unwrap()).unwrap().values() {
            assert_eq!(output.data, Data::Bf16(two.clone()));
        }
    }

    #[test]
    fn a_fault_names_target_entry_thread_and_line() {
        // In the whole text, although the machine runs an entry alone.
        let text = images::text("sm_110a").unwrap();
        let entry = text[..text.find(&format!(".entry {ANY}(")).unwrap()].lines().count();
        let line = entry + text.lines().skip(entry).position(|line| line.contains("], %rs")).unwrap() + 1;
        let odd = fault(&changed(ANY, "], %rs", "+1], %rs"));
        for part in [
            "adaln_modulation6_bf16: PTX of sm_110a, entry adaln_modulation6_bf16__any: ",
            "thread",
            &format!("PTX line {line} "),
            "misaligned",
        ] {
            assert!(odd.contains(part), "{odd}");
        }
    }

    #[test]
    fn a_byte_never_written_is_a_fault() {
        let unwritten = fault(&changed(ANY, "st.global.b16", "// st.global.b16"));
        assert!(unwritten.contains("out0: ") && unwritten.contains("never written"), "{unwritten}");
    }

    #[test]
    fn check_says_how_to_see_a_fault_again() {
        let engine = changed("adaln_modulation6_bf16__aligned", "st.global", "// st.global");
        let failure = check::cases(&engine, &[OPERATOR], 3, 5, Ui { quiet: true }).unwrap_err().to_string();
        assert!(failure.contains("is not run as it should be; `adaln check --seed 3 --cases 1`"), "{failure}");
    }
}
