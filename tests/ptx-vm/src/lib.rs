//! A PTX virtual machine.
