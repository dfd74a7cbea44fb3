"""Which targets a run of tests is about."""

from tvm.target.enabled import DEFAULT_TEST_TARGETS, device_enabled, device_of, enabled_targets

__all__ = ["DEFAULT_TEST_TARGETS", "device_enabled", "device_of", "enabled_targets"]
