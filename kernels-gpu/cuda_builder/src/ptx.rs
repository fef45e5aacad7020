//! Reading PTX: a form without comments, and the instructions of every entry.

/// PTX without comments and blank lines, so that it says nothing about the machine that made it.
pub fn normalise(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        let line = without_comment(line).trim_end();
        if !line.is_empty() {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'/' if !quoted && line[at..].starts_with("//") => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Normalised PTX with a `.maxnreg` directive at every entry that `limit` gives a number for.
pub fn limit_registers(ptx: &str, limit: impl Fn(&str) -> Option<u32>) -> String {
    let mut out = String::with_capacity(ptx.len());
    let mut pending = None;
    for line in ptx.lines() {
        if let Some((_, after)) = line.split_once(".entry ") {
            pending = limit(after.split('(').next().unwrap_or_default());
        }
        if line.starts_with('{')
            && let Some(registers) = pending.take()
        {
            out.push_str(&format!(".maxnreg {registers}\n"));
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// A kernel entry and the statements of its body.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The name a launch asks for.
    pub name: &'a str,
    /// The statements, without labels and predicates.
    pub statements: Vec<&'a str>,
}

/// The entries of normalised PTX.
pub fn entries(ptx: &str) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    let mut rest = ptx;
    while let Some(at) = rest.find(".entry ") {
        let after = &rest[at + ".entry ".len()..];
        let name = after.split(|c: char| c == '(' || c == '{' || c.is_whitespace()).next().unwrap_or_default();
        let body = body(after);
        rest = &after[after.len().min(offset(after, body) + body.len())..];
        found.push(Entry { name, statements: statements(body) });
    }
    found
}

/// What stands between the first brace and the one that closes it.
fn body(text: &str) -> &str {
    let start = text.find('{').unwrap_or(text.len());
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return &text[start + 1..at],
            b'}' => depth -= 1,
            _ => {}
        }
    }
    &text[text.len().min(start + 1)..]
}

fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}

fn statements(body: &str) -> Vec<&str> {
    body.split([';', '\n']).map(bare).filter(|statement| !statement.is_empty()).collect()
}

/// A statement without its braces, label and predicate.
fn bare(statement: &str) -> &str {
    let mut text = statement.trim_matches(|c: char| c == '{' || c == '}' || c.is_whitespace());
    if let Some((label, rest)) = text.split_once(':')
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
        && !rest.starts_with(':')
    {
        text = rest.trim_start();
    }
    match text.strip_prefix('@') {
        Some(guarded) => guarded.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start()),
        None => text,
    }
}

/// The first word of a statement.
pub fn opcode(statement: &str) -> &str {
    statement.split(char::is_whitespace).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = ".version 7.0 // a\n.visible .entry first(\n .param .u64 p\n)\n.maxntid 128\n{\n\tmov.u32 %r1, %tid.x; // b\n\
                       $L__BB0_1:\n@%p1 bra $L__BB0_1;\n\t{ .reg .b16 t; cvt.f32.f16 %r2, t; }\n\tld.global.nc.L1::no_allocate.v4.b32 \
                       {%r1,%r2}, [%rd1];\n}\n.visible .entry second()\n{\nret;\n}\n";

    #[test]
    fn comments_go_and_quotes_stay() {
        assert_eq!(normalise("a // b\n\n// c\n.pragma \"x//y\"; // z\n"), "a\n.pragma \"x//y\";\n");
    }

    #[test]
    fn limits_stand_between_parameters_and_body() {
        let text = normalise(TWO);
        let limited = limit_registers(&text, |name| (name == "second").then_some(80));
        assert_eq!(limited, text.replace("second()\n{", "second()\n.maxnreg 80\n{"));
        assert_eq!(limit_registers(&text, |_| None), text);
        assert_eq!(entries(&limited)[1].statements, ["ret"]);
    }

    #[test]
    fn entries_and_their_statements() {
        let text = normalise(TWO);
        let found = entries(&text);
        assert_eq!(found.iter().map(|e| e.name).collect::<Vec<_>>(), ["first", "second"]);
        let opcodes: Vec<&str> = found[0].statements.iter().map(|s| opcode(s)).collect();
        assert_eq!(opcodes, ["mov.u32", "bra", ".reg", "cvt.f32.f16", "ld.global.nc.L1::no_allocate.v4.b32"]);
        assert_eq!(found[1].statements, ["ret"]);
    }
}
