//! Function bodies: declarations, labels, scopes and instructions.

use super::ast::{Instruction, Operand, Statement};
use super::declaration::state_space;
use super::lexer::Token;
use super::number::Number;
use super::parser::{Failure, Parser};
use crate::ty::Ty;

type Parsed<T> = Result<T, Failure>;

impl Parser<'_> {
    /// Statements up to and with the closing brace.
    pub(super) fn statements(&mut self) -> Parsed<Vec<Statement>> {
        self.nested(Self::statements_inside)
    }

    fn statements_inside(&mut self) -> Parsed<Vec<Statement>> {
        let mut statements = Vec::new();
        while !self.eat('}') {
            if self.finished() {
                return self.expected("`}`");
            }
            self.statement(&mut statements)?;
        }
        Ok(statements)
    }

    fn statement(&mut self, into: &mut Vec<Statement>) -> Parsed<()> {
        if self.eat('{') {
            into.push(Statement::Scope(self.statements()?));
            return Ok(());
        }
        if self.eat(';') {
            return Ok(());
        }
        match self.peek_word() {
            Some(".reg") => self.registers(into),
            Some(".loc" | ".file") => {
                self.skip_line();
                Ok(())
            }
            Some(".pragma") => self.skip_pragma(),
            Some(word) if state_space(word).is_some() => {
                into.extend(self.variables(false)?.into_iter().map(Statement::Variable));
                Ok(())
            }
            Some(word) if word.starts_with('.') => self.unsupported(word),
            Some(_) if self.peek_after() == Some(&Token::Mark(':')) => self.label(into),
            _ => {
                let instruction = self.instruction()?;
                into.push(Statement::Instruction(instruction));
                Ok(())
            }
        }
    }

    /// `.reg .b32 %r<10>, %x;`
    fn registers(&mut self, into: &mut Vec<Statement>) -> Parsed<()> {
        self.advance();
        let word = self.word()?;
        let Some(ty) = word.strip_prefix('.').and_then(Ty::named) else { return self.unsupported(word) };
        loop {
            let line = self.line();
            let name = self.word()?.to_owned();
            let mut count = None;
            if self.eat('<') {
                count = Some(u32::try_from(self.integer()?).unwrap_or(u32::MAX));
                self.require('>')?;
            }
            into.push(Statement::Registers { ty, name, count, line });
            if !self.eat(',') {
                return self.require(';');
            }
        }
    }

    /// `name:`, or `name: .branchtargets a, b;`
    fn label(&mut self, into: &mut Vec<Statement>) -> Parsed<()> {
        let line = self.line();
        let name = self.word()?.to_owned();
        self.advance();
        if !self.eat_word(".branchtargets") {
            into.push(Statement::Label { name, line });
            return Ok(());
        }
        let mut labels = vec![self.word()?.to_owned()];
        while self.eat(',') {
            labels.push(self.word()?.to_owned());
        }
        into.push(Statement::Targets { name, labels, line });
        self.require(';')
    }

    fn instruction(&mut self) -> Parsed<Instruction> {
        let line = self.line();
        let mut guard = None;
        if self.eat('@') {
            let negated = self.eat('!');
            guard = Some((self.word()?.to_owned(), negated));
        }
        let opcode = self.word()?.to_owned();
        let mut operands = Vec::new();
        while !self.eat(';') {
            if !operands.is_empty() {
                self.require(',')?;
            }
            operands.push(self.operand()?);
        }
        Ok(Instruction { line, guard, opcode, operands })
    }

    fn operand(&mut self) -> Parsed<Operand> {
        let first = self.simple_operand()?;
        if self.eat('|') {
            return Ok(Operand::Pair(Box::new(first), Box::new(self.simple_operand()?)));
        }
        Ok(first)
    }

    fn simple_operand(&mut self) -> Parsed<Operand> {
        if self.eat('{') {
            return Ok(Operand::Vector(self.nested(|parser| parser.operands_until('}'))?));
        }
        if self.eat('(') {
            return Ok(Operand::List(self.nested(|parser| parser.operands_until(')'))?));
        }
        if self.eat('[') {
            return self.nested(Self::address);
        }
        if self.eat('!') {
            return Ok(Operand::Not(self.word()?.to_owned()));
        }
        let negative = self.eat('-');
        match self.peek() {
            Some(&Token::Number(number)) => {
                self.advance();
                Ok(Operand::Constant { number, negative })
            }
            Some(&Token::Word(word)) if !negative => {
                self.advance();
                Ok(if word == "_" { Operand::Sink } else { Operand::Name(word.to_owned()) })
            }
            _ => self.expected("an operand"),
        }
    }

    fn operands_until(&mut self, close: char) -> Parsed<Vec<Operand>> {
        let mut operands = Vec::new();
        while !self.eat(close) {
            if !operands.is_empty() {
                self.require(',')?;
            }
            operands.push(self.operand()?);
        }
        Ok(operands)
    }

    /// `[base]`, `[base+offset]`, `[base+-offset]`, `[constant]`
    fn address(&mut self) -> Parsed<Operand> {
        let base = Box::new(self.simple_operand()?);
        let mut offset = 0;
        if self.eat('+') {
            offset = self.offset()?;
        } else if self.eat('-') {
            offset = self.offset()?.wrapping_neg();
        }
        self.require(']')?;
        Ok(Operand::Address { base, offset })
    }

    fn offset(&mut self) -> Parsed<i64> {
        let negative = self.eat('-');
        match self.peek() {
            Some(&Token::Number(Number::Integer(value))) => {
                self.advance();
                let value = value.cast_signed();
                Ok(if negative { value.wrapping_neg() } else { value })
            }
            _ => self.expected("a constant offset"),
        }
    }
}
