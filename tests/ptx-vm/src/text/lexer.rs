//! Words, numbers and punctuation, each with its line.

use super::number::{Number, number};
use crate::error::ParseErrorKind;

/// A piece of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// An identifier, directive or opcode with all its modifiers (`ld.global.nc.L1::no_allocate.v4.b32` is one word).
    Word(&'a str),
    Number(Number),
    Text(&'a str),
    Mark(char),
}

/// A token and the line it stands on, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot<'a> {
    pub token: Token<'a>,
    pub line: u32,
}

/// Splits the module's text; comments vanish.
pub(crate) fn lex(text: &str) -> Result<Vec<Spot<'_>>, (u32, ParseErrorKind)> {
    let mut spots = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(next) = rest.chars().next() {
        let length = if let Some(comment) = comment_length(rest) {
            comment
        } else if next.is_whitespace() {
            next.len_utf8()
        } else {
            let (token, length) = token(rest, next).map_err(|kind| (line, kind))?;
            spots.push(Spot { token, line });
            length
        };
        let (seen, after) = rest.split_at(length);
        line += u32::try_from(seen.matches('\n').count()).unwrap_or(0);
        rest = after;
    }
    Ok(spots)
}

fn comment_length(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    let body = rest.strip_prefix("/*")?;
    Some(body.find("*/").map_or(rest.len(), |end| end + 4))
}

fn token(rest: &str, next: char) -> Result<(Token<'_>, usize), ParseErrorKind> {
    if next.is_ascii_digit() {
        let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
        return Ok((Token::Number(number(&rest[..length])?), length));
    }
    if is_word_start(next) {
        let length = word_length(rest);
        return Ok((Token::Word(&rest[..length]), length));
    }
    if next == '"' {
        let length = rest[1..].find('"').ok_or_else(|| ParseErrorKind::Syntax("a closing quote".into()))?;
        return Ok((Token::Text(&rest[1..=length]), length + 2));
    }
    Ok((Token::Mark(next), next.len_utf8()))
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%' | '.')
}

/// A double colon belongs to the word (`L1::no_allocate`), a single one ends a label.
fn word_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        let c = char::from(bytes[at]);
        if c == ':' && bytes.get(at + 1) == Some(&b':') {
            at += 2;
        } else if c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.') {
            at += 1;
        } else {
            break;
        }
    }
    at
}
