//! A cursor over the tokens, and the module level of the grammar.

use super::ast::Module;
use super::lexer::{Spot, Token, lex};
use super::number::Number;
use crate::error::{ParseError, ParseErrorKind};

type Parsed<T> = Result<T, Failure>;

/// A failure before its line is quoted.
#[derive(Debug)]
pub(crate) struct Failure {
    pub line: u32,
    pub kind: ParseErrorKind,
}

impl Failure {
    /// Adds the text of the line.
    pub(crate) fn quote(self, text: &str) -> ParseError {
        ParseError { line: self.line, text: line_text(text, self.line), kind: self.kind }
    }
}

/// The trimmed text of a line, from 1.
pub(crate) fn line_text(text: &str, line: u32) -> String {
    let index = usize::try_from(line).unwrap_or(0).saturating_sub(1);
    text.lines().nth(index).unwrap_or("").trim().to_owned()
}

/// Parses a whole module.
pub(crate) fn parse(text: &str) -> Parsed<Module> {
    let spots = lex(text).map_err(|(line, kind)| Failure { line, kind })?;
    let mut parser = Parser { spots, at: 0, depth: 0 };
    let mut module = Module::default();
    while !parser.finished() {
        parser.module_item(&mut module)?;
    }
    Ok(module)
}

/// A cursor over the tokens.
pub(super) struct Parser<'a> {
    spots: Vec<Spot<'a>>,
    at: usize,
    depth: u32,
}

/// Braces deeper than this are refused.
const MAX_DEPTH: u32 = 200;

impl<'a> Parser<'a> {
    pub(super) fn finished(&self) -> bool {
        self.at >= self.spots.len()
    }

    /// Parses something that may contain itself.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return self.expected("less nesting");
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    pub(super) fn line(&self) -> u32 {
        self.spots.get(self.at).or(self.spots.last()).map_or(1, |spot| spot.line)
    }

    pub(super) fn peek(&self) -> Option<&Token<'a>> {
        self.spots.get(self.at).map(|spot| &spot.token)
    }

    pub(super) fn peek_after(&self) -> Option<&Token<'a>> {
        self.spots.get(self.at + 1).map(|spot| &spot.token)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    pub(super) fn fail<T>(&self, kind: ParseErrorKind) -> Parsed<T> {
        Err(Failure { line: self.line(), kind })
    }

    pub(super) fn expected<T>(&self, what: &str) -> Parsed<T> {
        self.fail(ParseErrorKind::Syntax(what.to_owned()))
    }

    pub(super) fn unsupported<T>(&self, what: &str) -> Parsed<T> {
        self.fail(ParseErrorKind::UnsupportedDeclaration(what.to_owned()))
    }

    /// Consumes `mark` if it is next.
    pub(super) fn eat(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    /// Consumes the word `word` if it is next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(&Token::Word(word));
        self.at += usize::from(found);
        found
    }

    pub(super) fn require(&mut self, mark: char) -> Parsed<()> {
        if self.eat(mark) { Ok(()) } else { self.expected(&format!("`{mark}`")) }
    }

    pub(super) fn word(&mut self) -> Parsed<&'a str> {
        match self.peek() {
            Some(&Token::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            _ => self.expected("a name"),
        }
    }

    pub(super) fn peek_word(&self) -> Option<&'a str> {
        match self.peek() {
            Some(&Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub(super) fn integer(&mut self) -> Parsed<u64> {
        match self.peek() {
            Some(&Token::Number(Number::Integer(value))) => {
                self.at += 1;
                Ok(value)
            }
            _ => self.expected("an integer"),
        }
    }

    /// Skips to the end of the line: for directives that carry nothing to execute.
    pub(super) fn skip_line(&mut self) {
        let line = self.line();
        while !self.finished() && self.line() == line {
            self.at += 1;
        }
    }

    fn module_item(&mut self, module: &mut Module) -> Parsed<()> {
        let start = self.at;
        while self.eat_word(".visible")
            || self.eat_word(".extern")
            || self.eat_word(".weak")
            || self.eat_word(".common")
        {}
        match self.peek_word() {
            Some(".version") => module.version = self.rest_of_line(),
            Some(".target") => module.target = self.rest_of_line(),
            Some(".address_size") => {
                self.advance();
                if self.integer()? != 64 {
                    return self.unsupported("address size other than 64");
                }
            }
            Some(".file" | ".loc") => self.skip_line(),
            Some(".pragma") => self.skip_pragma()?,
            Some(".entry" | ".func") => {
                let function = self.function()?;
                module.functions.push(function);
            }
            Some(".global" | ".const" | ".shared") => {
                let external = self.spots[start].token == Token::Word(".extern");
                let variables = self.variables(external)?;
                module.variables.extend(variables);
            }
            Some(other) => return self.unsupported(other),
            None => return self.expected("a directive"),
        }
        Ok(())
    }

    pub(super) fn skip_pragma(&mut self) -> Parsed<()> {
        self.advance();
        while !self.eat(';') {
            if self.finished() {
                return self.expected("`;`");
            }
            self.advance();
        }
        Ok(())
    }

    fn rest_of_line(&mut self) -> String {
        let line = self.line();
        self.advance();
        let mut words = Vec::new();
        while !self.finished() && self.line() == line {
            match self.peek() {
                Some(Token::Word(word)) => words.push((*word).to_owned()),
                Some(Token::Number(Number::Decimal(value))) => words.push(format!("{value:.1}")),
                Some(Token::Number(Number::Integer(value))) => words.push(value.to_string()),
                _ => {}
            }
            self.advance();
        }
        words.join(" ")
    }
}
