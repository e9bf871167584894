//! Links the program at a fixed address on Linux: a command that appends one line would
//! else spend more on moving twelve thousand pointers than on the append. What that gives
//! up, a random place for its code, guards programs that handle memory by hand.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
