//! The operands of a call, as the checks see them.
use crate::operand::Extent;

/// Most operands of an operator.
pub(super) const MAX_OPERANDS: usize = 9;

/// An operand of a call.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    pub name: &'static str,
    pub extent: Extent,
    pub output: bool,
}

/// The operands of a call, without allocating.
#[derive(Default)]
pub(crate) struct OperandList {
    operands: [Option<Listed>; MAX_OPERANDS],
    len: usize,
}

impl OperandList {
    pub(crate) fn input(&mut self, name: &'static str, extent: Extent) {
        self.push(Listed { name, extent, output: false });
    }

    pub(crate) fn output(&mut self, name: &'static str, extent: Extent) {
        self.push(Listed { name, extent, output: true });
    }

    fn push(&mut self, operand: Listed) {
        self.operands[self.len] = Some(operand);
        self.len += 1;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Listed> {
        self.operands.iter().flatten().copied()
    }
}
