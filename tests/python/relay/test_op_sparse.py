"""relay.nn.sparse_dense against the product with the same matrix written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import tvm
from tvm import relay
from tvm.contrib import graph_executor


@pytest.mark.parametrize("sparse_lhs", [False, True])
@pytest.mark.parametrize("as_expressions", [False, True])
@pytest.mark.parametrize("kind", ["csr", "bsr"])
def test_products_are_those_of_the_matrix_written_out(kind, as_expressions, sparse_lhs):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(3, 8)).astype("float32")
    written = rng.normal(size=(6, 8)).astype("float32") * (rng.random((6, 8)) < 0.3)
    written = written.astype("float32")
    if kind == "csr":
        sparse = scipy.sparse.csr_matrix(written)
    else:
        sparse = scipy.sparse.bsr_matrix(written, blocksize=(2, 2))
    x = relay.var("x", shape=dense.shape, dtype="float32")
    parts = [sparse.data, sparse.indices, sparse.indptr]
    matrix = [relay.const(part) for part in parts] if as_expressions else sparse
    product = relay.nn.sparse_dense(x, matrix, sparse_lhs=sparse_lhs)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(product)))
    machine = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    machine.run(x=dense)
    expected = written @ dense.T if sparse_lhs else dense @ written.T
    np.testing.assert_allclose(
        machine.get_output(0).numpy(), np.maximum(expected, 0), rtol=1e-5, atol=1e-5
    )
