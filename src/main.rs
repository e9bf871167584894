//! The command `tapelog`.

use std::process::ExitCode;

fn main() -> ExitCode {
    tapelog::cli::main()
}
