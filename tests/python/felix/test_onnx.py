"""ONNX models: the tests of the onnx package, whole networks, and files that are refused."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402

import tvm  # noqa: E402
from testing_onnx_nodes import NOT_PASSED  # noqa: E402
from tvm import felix, relax  # noqa: E402
from tvm.relax.frontend.onnx import OnnxError, OnnxModule, from_onnx  # noqa: E402
from tvm.relax.frontend.onnx.types import tensor_of  # noqa: E402

EXCLUDED = {name for names in NOT_PASSED.values() for name in names}


def values(item):
    """Test data as tensors."""
    if item is None or isinstance(item, torch.Tensor):
        return item
    if isinstance(item, (list, tuple)):
        return [values(part) for part in item]
    return tensor_of(
        numpy_helper.to_array(item) if hasattr(item, "data_type") else np.asarray(item)
    )


def check(found, expected, rtol, atol):
    if expected is None or isinstance(expected, list):
        assert (found is None) == (expected is None)
        for one, other in zip(found or [], expected or [], strict=True):
            check(one, other, rtol, atol)
        return
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    wide = torch.float64 if expected.dtype.is_floating_point else expected.dtype
    torch.testing.assert_close(
        found.to(wide), expected.to(wide), rtol=rtol, atol=atol, equal_nan=True
    )


def run_case(case, network):
    for inputs, outputs in case.data_sets:
        with torch.no_grad():
            found = network(*values(list(inputs)))
        found = list(found) if isinstance(found, tuple) else [found]
        check(found, values(list(outputs)), case.rtol, case.atol)


@pytest.fixture(scope="module")
def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


@pytest.mark.slow
def test_nearly_all_node_tests_of_the_onnx_package_pass(cases):
    passed, failed = 0, []
    for case in cases:
        if case.name in EXCLUDED:
            continue
        try:
            run_case(case, OnnxModule(case.model))
            passed += 1
        except (ValueError, AssertionError, RuntimeError, TypeError) as error:
            failed.append(f"{case.name}: {error}"[:200])
    assert not failed, "\n".join(failed)
    assert passed >= 0.9 * len(cases)


COMPILED = [
    "test_deform_conv_with_mask_bias",
    "test_roialign_aligned_false",
    "test_roialign_aligned_true",
    "test_add_bcast",
    "test_conv_with_autopad_same",
    "test_gelu_tanh_2",
    "test_gemm_all_attributes",
    "test_layer_normalization_2d_axis1",
    "test_maxpool_2d_same_upper",
    "test_reduce_mean_keepdims_example",
    "test_softmax_axis_1",
    "test_slice",
    "test_transpose_all_permutations_3",
]


@pytest.mark.slow
def test_node_tests_pass_compiled_without_a_warning(cases):
    chosen = [case for case in cases if case.name in COMPILED]
    assert len(chosen) == len(COMPILED)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for case in chosen:
            run_case(case, felix.from_onnx(case.model))


def model_of(nodes, inputs, outputs, initializers=(), opset=17, kinds=None, **more):
    """A model; inputs and outputs are (name, shape), of float32 where `kinds` says nothing else."""
    kind = {**(kinds or {})}.get
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(n, kind(n, TensorProto.FLOAT), s) for n, s in inputs],
        [helper.make_tensor_value_info(n, kind(n, TensorProto.FLOAT), s) for n, s in outputs],
        [numpy_helper.from_array(array, name) for name, array in initializers],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **more)


@pytest.fixture
def convolutional():
    """relu(conv(x)) flattened by computed sizes, then a product: (2, 3, 8, 8) to (2, 5)."""
    rng = np.random.default_rng(0)
    weights = [
        ("w", rng.standard_normal((4, 3, 3, 3)).astype("float32")),
        ("b", rng.standard_normal(4).astype("float32")),
        ("m", rng.standard_normal((256, 5)).astype("float32")),
        ("zero", np.array([0])),
        ("minus", np.array([-1])),
    ]
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("Shape", ["r"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Concat", ["n", "minus"], ["t"], axis=0),
        node("Reshape", ["r", "t"], ["f"]),
        node("MatMul", ["f", "m"], ["y"]),
    ]
    return model_of(nodes, [("x", ["N", 3, 8, 8])], [("y", ["N", 5])], weights)


def reference(model, *arrays):
    from onnx.reference import ReferenceEvaluator

    names = [value.name for value in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, arrays)))


def test_a_model_is_called_with_arrays_or_tensors_of_any_batch(convolutional, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(convolutional, path)
    network = felix.from_onnx(path)
    assert (network.input_names, network.output_names) == (["x"], ["y"])
    for batch in (2, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 3, 8, 8)).astype("float32")
        (expected,) = reference(convolutional, x)
        found = network(x)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        tensor = network(torch.from_numpy(x))
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_model_takes_the_place_of_a_session_of_onnx_runtime(tmp_path):
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Neg", ["a"], ["less"])]
    model = model_of(nodes, [("a", ["N", 2]), ("b", [2])], [("sum", ["N", 2]), ("less", ["N", 2])])
    session = felix.from_onnx(model.SerializeToString())
    (first, second), a, b = session.get_inputs(), np.ones((3, 2), "float32"), np.ones(2, "float32")
    assert (first.name, first.shape, first.type) == ("a", ("N", 2), "tensor(float)")
    feed = {first.name: a, second.name: b}
    total, less = session.run(None, feed)
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(less, -a)
    names = [value.name for value in session.get_outputs()]
    (less,) = session.run(names[1:], feed)
    np.testing.assert_array_equal(less, -a)
    for found in (session(**feed), session(a, b=b)):
        np.testing.assert_array_equal(found[0], a + b)
    for call, message in {
        lambda: session.run(["z"], feed): "there is no result 'z'; it has sum, less",
        lambda: session.run(None, {"a": a}): "lacks the input 'b'; it takes a, b",
        lambda: session(a, b, b=b): "is given the input 'b' twice",
        lambda: session(a, c=b): "lacks the input 'b'",
        lambda: session(feed): r"write network\(\*\*inputs\), or network.run",
    }.items():
        with pytest.raises(OnnxError, match=message):
            call()


def test_inputs_whose_like_came_before_are_computed_and_refused_the_same():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    w = np.arange(12, dtype="float32").reshape(3, 4)
    model = model_of(nodes, [("x", ["N", 3])], [("y", ["N", 4])], [("w", w)])
    session = felix.from_onnx(model, cache=False)
    rng = np.random.default_rng(0)
    results = []
    for _ in range(3):
        x = rng.standard_normal((2, 3)).astype("float32")
        results.append((x, *session.run(None, {"x": x})))
        np.testing.assert_allclose(session(torch.from_numpy(x)).numpy(), x @ w, rtol=1e-5)
    wide = rng.standard_normal((2, 6)).astype("float32")
    frozen = wide[:, :3].copy()
    frozen.flags.writeable = False
    # Rows that do not lie one behind the other, an array that must not be shared, and a batch more.
    for x in (wide[:, ::2], frozen, rng.standard_normal((5, 3)).astype("float32")):
        results += [(x, *session.run(None, {"x": x})), (x, session(x))]
    # Each result has memory of its own.
    for x, y in results:
        assert y.flags.writeable
        np.testing.assert_allclose(y, x @ w, rtol=1e-5, atol=1e-5)
    with pytest.raises(OnnxError, match="must be float32 of shape .* got float64"):
        session.run(None, {"x": np.zeros((2, 3))})
    with pytest.raises(OnnxError, match=r"got float32 of shape \(3, 2\)"):
        session(np.zeros((3, 2), "float32"))
    with pytest.raises(OnnxError, match="lacks the input 'x'"):
        session.run(None, {"z": np.zeros((2, 3), "float32")})


def test_a_model_is_compiled_and_tuned_like_any_network(convolutional):
    network = felix.from_onnx(convolutional)
    inputs = network.example_inputs({"x": (2, 3, 8, 8)})
    compiled = felix.compile(network, inputs)
    assert [kernel.operators[0] for kernel in compiled.kernels if kernel.flop][0] == "nn.conv2d"
    np.testing.assert_allclose(
        compiled(*inputs), reference(convolutional, inputs[0].numpy())[0], rtol=1e-4, atol=1e-4
    )


def test_a_model_becomes_a_graph_module(convolutional):
    mod = from_onnx(convolutional, {"x": (1, 3, 8, 8)})
    machine = relax.VirtualMachine(relax.build(mod))
    x = np.ones((1, 3, 8, 8), "float32")
    np.testing.assert_allclose(
        machine["main"](tvm.nd.array(x)).numpy(), reference(convolutional, x)[0], rtol=1e-4
    )


def test_open_shapes_are_asked_for(convolutional):
    network = felix.from_onnx(convolutional)
    with pytest.raises(OnnxError, match=r"the shape \('N', 3, 8, 8\) of input 'x' is open"):
        network.example_inputs()
    with pytest.raises(OnnxError, match="there is no input z"):
        network.example_inputs({"z": (1,)})
    with pytest.raises(OnnxError, match=r"'x' must be of shape \('N', 3, 8, 8\), got \(2, 4,"):
        network.example_inputs({"x": (2, 4, 8, 8)})


def test_wrong_inputs_are_refused_with_what_was_expected(convolutional):
    network = felix.from_onnx(convolutional)
    with pytest.raises(OnnxError, match=r"takes 1 inputs \(x\), got 2"):
        network(np.zeros(3), np.zeros(3))
    with pytest.raises(OnnxError, match="'x' must be float32 of shape .* got float64 of shape"):
        network(np.zeros((1, 3, 8, 8)))
    with pytest.raises(OnnxError, match=r"got float32 of shape \(1, 4, 8, 8\)"):
        network(np.zeros((1, 4, 8, 8), "float32"))


def loop_model(turns, opset=17):
    """x doubled `turns` times."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["w"]),
            helper.make_node("Identity", ["going"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [2]),
        ],
    )
    nodes = [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)]
    return model_of(nodes, [("x", [2])], [("y", [2])], [("n", np.array(turns))], opset)


def test_loops_of_known_length_are_compiled():
    x = np.array([1.0, -3.0], "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        np.testing.assert_array_equal(felix.from_onnx(loop_model(4))(x), 16 * x)


def test_a_detector_runs_around_what_depends_on_the_data():
    """Scores of a product, the boxes that do not overlap, and their corners."""
    rng = np.random.default_rng(0)
    constants = [
        ("w", rng.standard_normal((4, 2)).astype("float32")),
        ("most", np.array([3], "int64")),
        ("overlap", np.array([0.4], "float32")),
        ("column", np.array(2, "int64")),
    ]
    nodes = [
        helper.make_node("MatMul", ["boxes", "w"], ["wide"]),
        helper.make_node("Sigmoid", ["wide"], ["chances"]),
        helper.make_node("Transpose", ["chances"], ["scores"], perm=[0, 2, 1]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["kept"]),
        helper.make_node("Gather", ["kept", "column"], ["index"], axis=1),
        helper.make_node("Gather", ["boxes", "index"], ["found"], axis=1),
        helper.make_node("Mul", ["found", "found"], ["squares"]),
    ]
    outputs = [("squares", None), ("kept", None)]
    kinds = {"kept": TensorProto.INT64}
    model = model_of(nodes, [("boxes", (1, 20, 4))], outputs, constants, kinds=kinds)
    network = felix.from_onnx(model, cache=False)
    with pytest.warns(UserWarning, match=r"non_max_suppression.default \(gives a result"):
        for _ in range(2):
            boxes = rng.random((1, 20, 4)).astype("float32")
            for one, other in zip(network(boxes), reference(model, boxes), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5)


def test_random_nodes_draw_anew_and_repeat_by_torchs_seed():
    drawn = {"shape": [2000], "seed": 3.0}
    nodes = [
        helper.make_node("RandomNormal", [], ["normal"], mean=2.0, scale=0.5, **drawn),
        helper.make_node("RandomUniformLike", ["x"], ["uniform"], low=-1.0, high=3.0),
        helper.make_node("Bernoulli", ["x"], ["event"], dtype=TensorProto.INT32),
        helper.make_node("Multinomial", ["logits"], ["class"], sample_size=2000),
        helper.make_node("Mul", ["uniform", "x"], ["scaled"]),
    ]
    inputs = [("x", (2000,)), ("logits", (2, 3))]
    results = [(name, None) for name in ("normal", "scaled", "event", "class")]
    model = model_of(nodes, inputs, results)
    network = felix.from_onnx(model, cache=False)
    x = np.full(2000, 0.25, "float32")
    logits = np.log(np.array([[0.2, 0.5, 0.3], [1, 1, 2]], "float32"))
    torch.manual_seed(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = network(x, logits), network(x, logits)
    torch.manual_seed(4)
    again = network(x, logits)
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    assert not any(np.array_equal(a, b) for a, b in zip(first, second))
    normal, scaled, event, kind = first
    assert abs(normal.mean() - 2) < 0.06 and abs(normal.std() - 0.5) < 0.04
    assert abs(scaled.mean() - 0.25) < 0.05 and scaled.min() >= -0.25 and scaled.max() < 0.75
    assert event.dtype == np.int32 and abs(event.mean() - 0.25) < 0.05
    assert kind.dtype == np.int32 and kind.shape == (2, 2000)
    shares = [np.bincount(row, minlength=3) / 2000 for row in kind]
    np.testing.assert_allclose(shares, [[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]], atol=0.06)


def refusal(model_or_path, *inputs):
    with pytest.raises(OnnxError) as caught:
        network = felix.from_onnx(model_or_path)
        network(*inputs)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_operators_that_are_not_known_are_listed_once_with_a_count():
    nodes = [
        helper.make_node("Twist", ["x"], ["a"], name="first", domain="my.own"),
        helper.make_node("Twist", ["a"], ["b"], domain="my.own"),
        helper.make_node("ImageDecoder", ["b"], ["y"]),
    ]
    text = refusal(model_of(nodes, [("x", [2])], [("y", [2])]))
    assert "ImageDecoder (1 times" in text
    assert "my.own.Twist (2 times, first in node 'first')" in text


def test_damaged_files_give_one_error(convolutional, tmp_path):
    path = tmp_path / "model.onnx"
    data = convolutional.SerializeToString()
    for damaged in (b"", b"no model at all", data[: len(data) // 2], bytes(100)):
        path.write_bytes(damaged)
        assert str(path) in refusal(path)
    with pytest.raises(FileNotFoundError):
        felix.from_onnx(tmp_path / "absent.onnx")


def test_newer_opsets_are_refused():
    newest = onnx.defs.onnx_opset_version()
    node = helper.make_node("Relu", ["x"], ["y"])
    model = model_of([node], [("x", [2])], [("y", [2])], opset=newest + 5)
    assert f"opset {newest + 5} is not known" in refusal(model)


def test_cycles_and_missing_values_are_refused():
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    text = refusal(model_of(nodes, [("x", [2])], [("b", [2])]))
    assert "reads 'b', which no node before it makes: the graph has a cycle" in text
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Abs", ["x"], ["a"])]
    assert "makes 'a', which another" in refusal(model_of(nodes, [("x", [2])], [("a", [2])]))
    text = refusal(model_of([], [("x", [2])], [("y", [2])]))
    assert "returns 'y', which no node makes" in text


def test_functions_that_call_themselves_are_refused():
    node = helper.make_node("F", ["x"], ["y"], domain="d")
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("d", 1)]
    function = helper.make_function("d", "F", ["x"], ["y"], [node], imports)
    model = model_of([node], [("x", [2])], [("y", [2])])
    model.functions.append(function)
    model.opset_import.append(imports[1])
    assert "function F calls itself" in refusal(model)


def test_external_data_outside_of_the_folder_is_not_opened(convolutional, tmp_path):
    (tmp_path / "secret").write_bytes(bytes(4 * 4 * 27))
    folder = tmp_path / "folder"
    folder.mkdir()
    for location in ("../secret", str(tmp_path / "secret"), ""):
        weight = convolutional.graph.initializer[0]
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        del weight.external_data[:]
        weight.external_data.add(key="location", value=location)
        (folder / "model.onnx").write_bytes(convolutional.SerializeToString())
        assert "outside of the model's folder" in refusal(folder / "model.onnx")


def test_external_data_is_read_from_beside_the_file(convolutional, tmp_path):
    x = np.ones((1, 3, 8, 8), "float32")
    expected = reference(convolutional, x)[0]
    path = tmp_path / "model.onnx"
    onnx.save(convolutional, path, save_as_external_data=True, size_threshold=0, location="w.bin")
    np.testing.assert_allclose(felix.from_onnx(path)(x), expected, rtol=1e-4, atol=1e-4)
    (tmp_path / "w.bin").write_bytes(b"short")
    assert "which has 5 bytes" in refusal(path)


@pytest.mark.timeout(60)
def test_impossible_sizes_neither_crash_nor_hang():
    huge = 1 << 60
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[huge], raw_data=b"1234")
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], [("x", [2])], [("y", [2])])
    model.graph.initializer.append(tensor)
    assert "has the impossible shape" in refusal(model)
    model.graph.initializer[0].dims[0] = 7
    assert "has 4 bytes, not 28" in refusal(model)
    x = np.ones(2, "float32")
    for kind, inputs in (
        ("ConstantOfShape", ["n"]),
        ("Expand", ["x", "n2"]),
        ("Tile", ["x", "n"]),
        ("Range", ["zero", "n0", "one"]),
    ):
        initial = [("n", np.array([huge])), ("n0", np.array(huge)), ("zero", np.array(0))]
        initial += [("one", np.array(1)), ("n2", np.array([huge, 2]))]
        nodes = [helper.make_node(kind, inputs, ["y"])]
        model = model_of(nodes, [("x", [2])], [("y", None)], initial)
        assert "impossible shape" in refusal(model, x)
    assert "a loop of more than" in refusal(loop_model(huge), x)


def test_attributes_of_a_wrong_type_are_refused_by_node():
    node = helper.make_node("Transpose", ["x"], ["y"], name="turn", perm="sideways")
    text = refusal(model_of([node], [("x", [2, 2])], [("y", [2, 2])]), np.zeros((2, 2), "float32"))
    assert "node 'turn' (Transpose)" in text


def test_what_a_node_cannot_compute_is_told_by_node():
    x = np.ones((1, 1, 4, 4), "float32")
    weight = [("w", np.ones((1, 1, 3, 3), "float32"))]
    for attributes, reason in (
        ({"strides": [0, 0]}, "stride"),
        ({"pads": [1 << 40] * 4}, "memory"),
    ):
        node = helper.make_node("Conv", ["x", "w"], ["y"], name="filter", **attributes)
        text = refusal(model_of([node], [("x", [1, 1, 4, 4])], [("y", None)], weight), x)
        assert "node 'filter' (Conv): RuntimeError" in text and reason in text
    node = helper.make_node("Split", ["x"], ["y", "z"], num_outputs=1 << 40)
    text = refusal(model_of([node], [("x", [4])], [("y", None), ("z", None)]), x[0, 0, 0])
    assert "but the node has 2 outputs" in text


def test_a_network_says_what_it_takes_and_gives(convolutional):
    network = felix.from_onnx(convolutional)
    text = repr(network)
    assert "OnnxNetwork of " in text and "float32 (N, 3, 8, 8)" in text
    assert all(name in text for name in (*network.input_names, *network.output_names))


def odd_names():
    weight = np.random.default_rng(0).normal(size=(40, 40)).astype("float32")
    nodes = [
        helper.make_node("Add", ["in.put:0", "layer/weight"], ["sum"]),
        helper.make_node("Mul", ["sum", "1b"], ["result"]),
    ]
    graph = helper.make_graph(
        nodes,
        "names",
        [
            helper.make_tensor_value_info("in.put:0", TensorProto.FLOAT, ["n", 40]),
            helper.make_tensor_value_info("1b", TensorProto.FLOAT, [40, 40]),
        ],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "layer/weight")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), weight


def test_graph_modules_have_the_names_of_the_model():
    model, weight = odd_names()
    shapes = {"in.put:0": (40, 40)}

    def names(**options):
        return [str(p.name_hint) for p in from_onnx(model, shapes, **options)["main"].params]

    assert names() == ["in_put_0", "input_1b"]
    assert names(sanitize_input_names=False) == ["in.put:0", "1b"]
    kept = {"keep_params_in_input": True}
    assert names(**kept) == ["in_put_0", "input_1b", "layer_weight"]
    assert names(**kept, sanitize_input_names=False)[2] == "layer/weight"
    mod, params = relax.frontend.detach_params(from_onnx(model, shapes, **kept))
    machine = relax.VirtualMachine(relax.build(mod))
    a, b = (np.random.default_rng(k).normal(size=(40, 40)).astype("float32") for k in (1, 2))
    found = machine["main"](tvm.nd.array(a), tvm.nd.array(b), *params["main"]).numpy()
    np.testing.assert_allclose(found, (a + weight) * b, rtol=1e-5)


def test_types_and_opset_may_be_other_than_the_models():
    model, _ = odd_names()
    shapes = {"in.put:0": (40, 40)}
    double = from_onnx(model, shapes, dtype_dict={"1b": "float64"})["main"]
    assert [str(p.struct_info.dtype) for p in double.params] == ["float32", "float64"]
    assert str(from_onnx(model, shapes, "float16")["main"].params[0].struct_info.dtype) == "float32"
    with pytest.raises(OnnxError, match="there is no input c"):
        from_onnx(model, shapes, {"c": "float32"})
    with pytest.raises(OnnxError, match="input '1b' cannot be of type 'real'; there are bfloat16"):
        from_onnx(model, shapes, {"1b": "real"})
    with pytest.raises(OnnxError, match="opset 99 is not known"):
        from_onnx(model, shapes, opset=99)
    # Before opset 13 the axes of a squeeze were a setting.
    node = helper.make_node("Squeeze", ["x"], ["y"], axes=[0])
    graph = helper.make_graph(
        [node],
        "squeeze",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    older = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    result = from_onnx(older, opset=11)["main"].ret_struct_info
    assert [int(extent) for extent in result.shape.values] == [1, 3]


def test_networks_that_were_called_are_copied_and_pickled():
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", values[:1], values[1:])
    opset = [helper.make_opsetid("", 17)]
    network = felix.from_onnx(helper.make_model(graph, opset_imports=opset, ir_version=8))
    x = np.array([-1, 2, 3], "float32")
    expected = network(x)
    for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        np.testing.assert_array_equal(other(x), expected)
        np.testing.assert_array_equal(other.run(None, {"x": x})[0], expected)
