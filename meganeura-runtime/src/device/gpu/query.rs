//! Limits and heaps of a device, asked of its driver, since the driver library passes on neither.
//!
//! Where the question fails, or on platforms without Vulkan, the baseline holds.

#[cfg(not(any(target_os = "macos", target_os = "ios")))]
use super::context::exclusive;
use super::limits::Limits;

/// The limits of the device with this name, and the bytes of its device-local heaps.
#[cfg(not(any(target_os = "macos", target_os = "ios")))]
#[allow(unsafe_code)]
pub(super) fn query(name: &str) -> Option<(Limits, u64)> {
    use ash::vk;
    let _exclusive = exclusive();
    // SAFETY: loading the Vulkan library runs its initialisers, as opening the device did just before.
    let entry = unsafe { ash::Entry::load() }.ok()?;
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
    let create = vk::InstanceCreateInfo::default().application_info(&application);
    // SAFETY: `create` asks for no layer and no extension, and lives through the call.
    let instance = unsafe { entry.create_instance(&create, None) }.ok()?;
    // SAFETY: the handles come from this instance, which is destroyed after their last use.
    let found = unsafe {
        let devices = instance.enumerate_physical_devices().unwrap_or_default();
        let found = devices.into_iter().find_map(|device| {
            let properties = instance.get_physical_device_properties(device);
            let same = properties.device_name_as_c_str().is_ok_and(|other| other.to_string_lossy() == name);
            same.then(|| (properties.limits, instance.get_physical_device_memory_properties(device)))
        });
        instance.destroy_instance(None);
        found
    };
    let (limits, memory) = found?;
    let local = |heap: &&vk::MemoryHeap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
    let heap = memory.memory_heaps_as_slice().iter().filter(local).map(|heap| heap.size).sum();
    // Beyond two gigabytes, byte offsets would not fit into what some shader compilers compute with.
    let range = u64::from(limits.max_storage_buffer_range).min(1 << 31) & !255;
    let limits = Limits {
        binding_bytes: range.max(Limits::BASELINE.binding_bytes),
        workgroups: Limits::BASELINE.workgroups,
        invocations: limits.max_compute_work_group_invocations,
        workgroup: limits.max_compute_work_group_size,
        workgroup_bytes: limits.max_compute_shared_memory_size,
    };
    Some((limits, heap))
}

/// Nothing is asked of Metal.
#[cfg(any(target_os = "macos", target_os = "ios"))]
pub(super) fn query(_name: &str) -> Option<(Limits, u64)> {
    None
}
