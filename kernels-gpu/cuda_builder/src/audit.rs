//! The audit: what must not be in an image, and what must.
//!
//! The contract promises the same bits on every GPU, so nothing approximate, flushed or contractible may stand in the PTX; the design
//! promises one pass over memory with the row in registers, so no calls, no local memory, no spills, and loads of 16 bytes; a
//! compiler is known to duplicate barriers into divergent branches, so they are counted; and a grid that starts before the previous one
//! has ended must read nothing before it has waited, but ptxas moves `ld.global.nc` there, which promises that nobody writes.

use crate::ptx::{self, Entry};
use crate::ptxas::Resources;
use crate::targets::{Target, TargetList};
use serde::Deserialize;

/// What the audit counted in an entry; the manifest records it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Counts {
    /// Block-wide barriers.
    pub barriers: usize,
    /// Fused multiply-adds, each of which the source wrote.
    pub fma: usize,
    /// Loads, or copies to shared memory, of at least 16 bytes.
    pub wide_loads: usize,
}

/// Counts the instructions of an entry.
pub fn count(entry: &Entry<'_>) -> Counts {
    let mut counts = Counts::default();
    for statement in &entry.statements {
        let op = ptx::opcode(statement);
        counts.barriers += usize::from(is_barrier(op));
        counts.fma += usize::from(op.starts_with("fma."));
        counts.wide_loads += usize::from(loaded_bytes(statement) >= 16);
    }
    counts
}

/// Checks normalised PTX; one sentence for every finding.
pub fn audit_ptx(text: &str, list: &TargetList) -> Vec<String> {
    let entries = ptx::entries(text);
    let mut findings = module_findings(text);
    if entries.is_empty() {
        findings.push("there is no entry".to_owned());
    }
    for entry in &entries {
        let found = instruction_findings(entry)
            .into_iter()
            .chain(wait_findings(entry))
            .chain(expectation_findings(entry, list));
        findings.extend(found.map(|what| format!("{}: {what}", entry.name)));
    }
    findings
}

/// Checks that PTX is that of its target: targets share cargo's folder, and an older one's PTX would assemble for a newer one.
pub fn audit_target(text: &str, target: &Target) -> Vec<String> {
    if target.cfg.iter().any(|cfg| cfg == "sm_90_up") {
        let waits = |entry: &Entry<'_>| entry.statements.iter().any(|statement| ptx::opcode(statement) == WAIT);
        let missing = ptx::entries(text).into_iter().filter(|entry| !waits(entry));
        let findings: Vec<_> = missing.map(|entry| format!("{}: no wait for the previous grid", entry.name)).collect();
        if !findings.is_empty() {
            return findings;
        }
    }
    let head = format!(".version {}\n.target {}\n", target.ptx_version(), target.name);
    if text.starts_with(&head) {
        return vec![];
    }
    let found = text.lines().take(2).collect::<Vec<_>>().join(", ");
    vec![format!("the PTX begins with `{found}`; was another build running in the same folder?")]
}

/// Checks what ptxas reported; one sentence for every finding.
pub fn audit_resources(resources: &[Resources]) -> Vec<String> {
    let mut findings = Vec::new();
    for entry in resources {
        for (bytes, what) in [(entry.local, "local memory"), (entry.spills, "spills")] {
            if bytes != 0 {
                findings.push(format!("{}: {bytes} bytes of {what}", entry.name));
            }
        }
    }
    findings
}

/// Functions and local variables of the module: everything is inlined into the entries and lives in registers.
fn module_findings(text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for line in text.lines().filter(|line| line.contains(".func") || line.contains(".local")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let what = match (words.contains(&".func"), words.contains(&".extern")) {
            (true, true) => "an undefined function",
            (true, false) => "a function that was not inlined",
            _ if words.contains(&".local") => "local memory",
            _ => continue,
        };
        findings.push(format!("{what}: `{}`", line.trim()));
    }
    findings
}

fn instruction_findings(entry: &Entry<'_>) -> Vec<String> {
    let mut findings: Vec<String> = Vec::new();
    for &statement in &entry.statements {
        if let Some(what) = forbidden(ptx::opcode(statement)) {
            let finding = format!("{what}: `{statement}`");
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    findings
}

/// Programmatic dependent launch: behind it, what the previous grid wrote is there.
const WAIT: &str = "griddepcontrol.wait";

/// An entry that waits for the previous grid does so once, before it touches memory that the grid may write.
fn wait_findings(entry: &Entry<'_>) -> Vec<String> {
    let opcodes: Vec<&str> = entry.statements.iter().map(|statement| ptx::opcode(statement)).collect();
    let touches = |op: &&str| {
        ["ld.global", "st.global", "cp.async.c", "atom.", "red."].iter().any(|access| op.starts_with(access))
    };
    match opcodes.iter().filter(|op| **op == WAIT).count() {
        0 => vec![],
        1 => {
            let early = opcodes.iter().take_while(|op| **op != WAIT).find(|op| touches(op));
            early.map(|op| format!("`{op}` before the wait for the previous grid")).into_iter().collect()
        }
        waits => vec![format!("{waits} waits for the previous grid")],
    }
}

/// Why an instruction may not be there.
fn forbidden(op: &str) -> Option<&'static str> {
    let parts: Vec<&str> = op.split('.').collect();
    let has = |part: &str| parts.contains(&part);
    match () {
        () if op.starts_with('.') => None, // a directive
        () if parts[0] == "call" => Some("a call"),
        () if has("local") => Some("local memory"),
        () if (parts[0] == "ld" && has("nc")) || parts[0] == "ldu" => {
            Some("a load that may pass the wait for the previous grid")
        }
        () if has("approx") || has("full") => Some("an approximate operation"),
        () if has("ftz") => Some("subnormals flushed to zero"),
        () if is_contractible(&parts) => Some("no rounding mode, so ptxas may contract it into an fma"),
        () => None,
    }
}

/// ptxas fuses a float multiplication and addition unless each names its rounding.
fn is_contractible(parts: &[&str]) -> bool {
    let arithmetic = ["add", "sub", "mul", "mad", "fma"].contains(&parts[0]);
    let float = parts.iter().any(|part| ["f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"].contains(part));
    let rounded = parts.iter().any(|part| ["rn", "rz", "rm", "rp"].contains(part));
    arithmetic && float && !rounded
}

fn expectation_findings(entry: &Entry<'_>, list: &TargetList) -> Vec<String> {
    let Some(rule) = list.rule(entry.name) else {
        return vec!["no rule of the target list matches this entry".to_owned()];
    };
    let counts = count(entry);
    let mut findings = Vec::new();
    if counts.barriers != rule.barriers {
        findings.push(format!("{} barriers where {} are expected", counts.barriers, rule.barriers));
    }
    if rule.wide_loads && counts.wide_loads == 0 {
        findings.push("no 16-byte load".to_owned());
    }
    findings
}

fn is_barrier(op: &str) -> bool {
    let cluster = op.starts_with("barrier.cluster");
    (op.starts_with("bar.") && !op.starts_with("bar.warp")) || (op.starts_with("barrier.") && !cluster)
}

/// Bytes that a load or an asynchronous copy brings from global memory for one thread; 0 for every other instruction.
fn loaded_bytes(statement: &str) -> usize {
    let op = ptx::opcode(statement);
    if op.starts_with("ld.global.") {
        return vector_bytes(op);
    }
    if op.starts_with("cp.async.") && op.contains(".shared") && op.contains(".global") {
        return statement.split(',').nth(2).and_then(|size| size.trim().parse().ok()).unwrap_or(0);
    }
    0
}

fn vector_bytes(op: &str) -> usize {
    let (mut lanes, mut bits) = (1, 0);
    for part in op.split('.') {
        match part.split_at(1.min(part.len())) {
            ("v", count) => lanes = count.parse().unwrap_or(lanes),
            ("b" | "u" | "s" | "f", width) => bits = width.parse().unwrap_or(bits),
            _ => {}
        }
    }
    lanes * bits / 8
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
