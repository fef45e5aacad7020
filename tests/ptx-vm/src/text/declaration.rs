//! Variables, parameters and functions.

use super::ast::{Function, StateSpace, Variable};
use super::lexer::Token;
use super::number::Number;
use super::parser::{Failure, Parser};
use crate::ty::Ty;

type Parsed<T> = Result<T, Failure>;

/// Limits that keep a wrong text from asking for the host's memory.
const MAX_ALIGN: u64 = 1 << 20;
const MAX_BYTES: u64 = 1 << 30;

/// The state space named by a directive.
pub(super) fn state_space(word: &str) -> Option<StateSpace> {
    Some(match word {
        ".global" => StateSpace::Global,
        ".const" => StateSpace::Const,
        ".shared" | ".shared::cta" => StateSpace::Shared,
        ".local" => StateSpace::Local,
        ".param" => StateSpace::Param,
        _ => return None,
    })
}

impl Parser<'_> {
    /// One declaration statement, which may name several variables.
    pub(super) fn variables(&mut self, external: bool) -> Parsed<Vec<Variable>> {
        let mut variables = vec![self.variable(external)?];
        while self.eat(',') {
            let first = &variables[0];
            let (space, ty, align) = (first.space, first.ty, first.align);
            let variable = self.declarator(space, ty, align, external)?;
            variables.push(variable);
        }
        self.require(';')?;
        Ok(variables)
    }

    /// `.space .align N .type name[count] = { .. }`, without the semicolon.
    fn variable(&mut self, external: bool) -> Parsed<Variable> {
        let Some(space) = self.peek_word().and_then(state_space) else { return self.expected("a state space") };
        self.advance();
        let mut align = None;
        let mut ty = None;
        while let Some(word) = self.peek_word().filter(|word| word.starts_with('.')) {
            self.advance();
            match word {
                ".align" => align = Some(self.integer()?),
                ".ptr" => self.pointer_attributes()?,
                _ => match Ty::named(&word[1..]) {
                    Some(named) => ty = Some(named),
                    None => return self.unsupported(word),
                },
            }
        }
        let Some(ty) = ty else { return self.expected("a type") };
        let align = align.unwrap_or(ty.bytes());
        if !align.is_power_of_two() || align > MAX_ALIGN {
            return self.expected("an alignment that is a power of two, at most 2^20");
        }
        self.declarator(space, ty, align, external)
    }

    /// `.ptr .space .align N` of a parameter: a promise about the pointer's target.
    fn pointer_attributes(&mut self) -> Parsed<()> {
        if self.peek_word().and_then(state_space).is_some() {
            self.advance();
        }
        if self.eat_word(".align") {
            self.integer()?;
        }
        Ok(())
    }

    fn declarator(&mut self, space: StateSpace, ty: Ty, align: u64, external: bool) -> Parsed<Variable> {
        let line = self.line();
        let name = self.word()?.to_owned();
        let mut bytes = Some(ty.bytes());
        while self.eat('[') {
            let count = if self.eat(']') {
                None
            } else {
                let count = self.integer()?;
                self.require(']')?;
                Some(count)
            };
            bytes = bytes.zip(count).and_then(|(bytes, count)| bytes.checked_mul(count));
        }
        if bytes.is_none() && !(external && space == StateSpace::Shared) {
            return self.unsupported("an array without a size");
        }
        if bytes.is_some_and(|bytes| bytes > MAX_BYTES) {
            return self.unsupported("a variable of more than 2^30 bytes");
        }
        let initial = if self.eat('=') { Some(self.initialiser(ty)?) } else { None };
        if initial.as_ref().is_some_and(|i| bytes.is_none_or(|b| i.len() as u64 > b)) {
            return self.expected("an initialiser that fits");
        }
        Ok(Variable { space, name, ty, align, bytes, initial, line })
    }

    fn initialiser(&mut self, ty: Ty) -> Parsed<Vec<u8>> {
        if !self.eat('{') {
            return self.initial_value(ty);
        }
        let mut bytes = Vec::new();
        while !self.eat('}') {
            bytes.extend(self.nested(|parser| parser.initialiser(ty))?);
            self.eat(',');
        }
        Ok(bytes)
    }

    fn initial_value(&mut self, ty: Ty) -> Parsed<Vec<u8>> {
        let negative = self.eat('-');
        let Some(&Token::Number(number)) = self.peek() else { return self.unsupported("this initialiser") };
        self.advance();
        let bits = match (number, ty) {
            (Number::Integer(value), _) if !ty.is_float() => {
                if negative {
                    value.wrapping_neg()
                } else {
                    value
                }
            }
            (Number::Single(bits), Ty::F32 | Ty::B(32)) if !negative => u64::from(bits),
            (Number::Double(bits), Ty::F64 | Ty::B(64)) if !negative => bits,
            _ => return self.unsupported("this initialiser"),
        };
        Ok(bits.to_le_bytes()[..usize::try_from(ty.bytes()).unwrap_or(8).min(8)].to_vec())
    }

    /// `.entry name (params) directives { .. }` or `.func (results) name (params) { .. }`.
    pub(super) fn function(&mut self) -> Parsed<Function> {
        let line = self.line();
        let entry = self.word()? == ".entry";
        let results = self.parameters()?;
        let name = self.word()?.to_owned();
        let parameters = self.parameters()?;
        let mut function = Function {
            name,
            entry,
            results,
            parameters,
            required_threads: None,
            maximum_threads: None,
            body: None,
            line,
        };
        self.performance_directives(&mut function)?;
        if !self.eat(';') {
            self.require('{')?;
            function.body = Some(self.statements()?);
        }
        Ok(function)
    }

    fn parameters(&mut self) -> Parsed<Vec<Variable>> {
        let mut parameters = Vec::new();
        if !self.eat('(') {
            return Ok(parameters);
        }
        while !self.eat(')') {
            parameters.push(self.variable(false)?);
            self.eat(',');
        }
        Ok(parameters)
    }

    fn performance_directives(&mut self, function: &mut Function) -> Parsed<()> {
        while let Some(word) = self.peek_word() {
            match word {
                ".maxntid" => {
                    self.advance();
                    function.maximum_threads = Some(self.extent()?);
                }
                ".reqntid" => {
                    self.advance();
                    function.required_threads = Some(self.extent()?);
                }
                ".minnctapersm" | ".maxnctapersm" | ".maxnreg" => {
                    self.advance();
                    self.integer()?;
                }
                ".noreturn" => self.advance(),
                ".pragma" => self.skip_pragma()?,
                other => return self.unsupported(other),
            }
        }
        Ok(())
    }

    fn extent(&mut self) -> Parsed<[u32; 3]> {
        let mut extent = [1; 3];
        for (axis, value) in extent.iter_mut().enumerate() {
            if axis > 0 && !self.eat(',') {
                break;
            }
            *value = u32::try_from(self.integer()?).unwrap_or(u32::MAX);
        }
        Ok(extent)
    }
}
