use super::args::InspectArguments;
use crate::error::Failure;
pub fn inspect(_a: &InspectArguments) -> Result<(), Failure> { Err(Failure::new("x")) }
