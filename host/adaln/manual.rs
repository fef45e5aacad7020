//! `adaln completions` and `adaln man`: what a package installs beside the program.
use crate::cli::Cli;
use crate::failure::{Failure, Outcome};
use crate::ui;
use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

/// Print a script that completes the command line in a shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  adaln completions bash > /etc/bash_completion.d/adaln\n  adaln completions zsh > ~/.zfunc/_adaln"
)]
pub struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

/// Print the manual page of the program, or of one command
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  adaln man > adaln.1\n  adaln man run | man -l -")]
pub struct ManArgs {
    /// Which command
    command: Option<String>,
}

/// Prints the completions.
pub fn completions(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "adaln", &mut script);
    ui::print(&String::from_utf8_lossy(&script))
}

/// Prints the page.
pub fn man(args: &ManArgs) -> Outcome {
    let mut program = Cli::command();
    program.build();
    let command = match &args.command {
        None => program,
        Some(name) => {
            let known = program.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>().join(", ");
            let found = program.find_subcommand(name).cloned();
            let found = found.ok_or_else(|| Failure::input(format!("no command {name}, expected one of {known}")))?;
            found.display_name(format!("adaln-{name}"))
        }
    };
    // The page's own synopsis leaves out what options take.
    let mut command = command;
    let usage = command.render_usage().to_string();
    let command = command.override_usage(usage.trim_start_matches("Usage: ").to_owned());
    let mut page = Vec::new();
    let source = concat!("adaln ", env!("CARGO_PKG_VERSION"));
    Man::new(command)
        .source(source)
        .render(&mut page)
        .map_err(|error| Failure::input(format!("cannot write the page: {error}")))?;
    ui::print(&String::from_utf8_lossy(&page))
}
