//! Checks a shader text as the devices' drivers will see it: parsed, validated, and written as SPIR-V and as MSL.

use std::panic::{AssertUnwindSafe, catch_unwind};

use naga::back::{msl, spv};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{AddressSpace, ResourceBinding, ShaderStage};

/// Whether a text survives the compilers that devices use; else what is wrong with it. Their panics are errors, too.
pub fn validate(text: &str) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| check(text))).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(format!("the shader compiler panicked: {message}"))
    })
}

fn check(text: &str) -> Result<(), String> {
    let mut module = naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
    let is_resource = |space: AddressSpace| matches!(space, AddressSpace::Uniform | AddressSpace::Storage { .. });
    let (mut slots, mut resources) = (vec![], msl::EntryPointResources::default());
    for (handle, variable) in module.global_variables.iter().filter(|(_, variable)| is_resource(variable.space)) {
        let binding = ResourceBinding { group: 0, binding: slots.len() as u32 };
        slots.push(handle);
        let mutable =
            matches!(variable.space, AddressSpace::Storage { access } if access.contains(naga::StorageAccess::STORE));
        let target = msl::BindTarget { buffer: Some(binding.binding as u8), mutable, ..Default::default() };
        resources.resources.insert(binding, target);
    }
    resources.sizes_buffer = Some(slots.len() as u8);
    for (number, handle) in slots.into_iter().enumerate() {
        let binding = ResourceBinding { group: 0, binding: number as u32 };
        module.global_variables.get_mut(handle).binding = Some(binding);
    }
    let info = Validator::new(ValidationFlags::all(), Capabilities::empty())
        .validate(&module)
        .map_err(|error| error.emit_to_string(text))?;
    if !module.entry_points.iter().any(|entry| entry.name == "main" && entry.stage == ShaderStage::Compute) {
        return Err("there is no compute entry point `main`".into());
    }
    let options = spv::Options { lang_version: (1, 3), ..Default::default() };
    spv::write_vec(&module, &info, &options, None).map_err(|error| format!("as SPIR-V: {error}"))?;
    let options = msl::Options {
        lang_version: (2, 4),
        per_entry_point_map: [("main".to_string(), resources)].into(),
        fake_missing_bindings: false,
        ..Default::default()
    };
    msl::write_string(&module, &info, &options, &msl::PipelineOptions::default())
        .map_err(|error| format!("as MSL: {error}"))?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const GOOD: &str = "struct P { groups: u32 }
var<storage, read_write> b0: array<f32>;
var<uniform> p: P;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) lane: u32) { b0[lane] = f32(p.groups); }";

    #[test]
    fn a_text_without_binding_numbers_is_right() {
        assert_eq!(validate(GOOD), Ok(()));
    }

    #[test]
    fn faults_are_told_apart() {
        assert!(validate("fn main(").unwrap_err().contains("error"));
        assert!(validate(&GOOD.replace("f32(p.groups)", "p.groups")).is_err());
        assert!(validate(&GOOD.replace("fn main", "fn other")).unwrap_err().contains("main"));
    }
}
