"""Names that stages and axes do not have."""

from __future__ import annotations

import pytest

from tvm import te


def test_an_unknown_name_is_refused_without_a_hint():
    stage = te.create_schedule(te.compute((4,), lambda i: i).op).stages[0]
    with pytest.raises(AttributeError, match="nonsense"):
        _ = stage.nonsense
    with pytest.raises(AttributeError, match="nonsense"):
        _ = te.reduce_axis((0, 4)).nonsense
