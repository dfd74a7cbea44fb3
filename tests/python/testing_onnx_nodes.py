"""Node tests of the onnx package that are not passed, by reason."""

from __future__ import annotations

NOT_PASSED: dict[str, list[str]] = {}
