"""``torch.export`` of modules as they behave in inference, with errors for who calls it."""

from __future__ import annotations

import inspect
import io
import itertools
import linecache
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import Any

import torch
import torch.fx.experimental._config
from torch.utils import _pytree as pytree

from .eager_quantized import (
    QuantizedProgram,
    has_packed_weights,
    is_quantized_script,
    signature_of,
)
from .structure import assembled, taken_apart

__all__ = ["export_for_inference", "in_eval_mode", "quiet"]


def in_eval_mode(model: torch.nn.Module) -> torch.nn.Module:
    """The module, now in eval mode.

    A module that is a program exported before has its mode in its operators and stays as it is.
    """
    with suppress(NotImplementedError):
        model.eval()
    return model


class _FunctionModule(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function
        if _signature(function) is not None:
            # The export names inputs, and reads dynamic_shapes, by the parameters.
            self.forward = function  # type: ignore[method-assign]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


class _ScriptedModule(torch.nn.Module):
    """A traced or scripted module as one that can be exported: its operators run one by one."""

    def __init__(self, scripted: torch.jit.ScriptModule) -> None:
        super().__init__()
        self.scripted = scripted
        for part in scripted.modules():
            for name, tensor in list(part.named_parameters(recurse=False)):
                # Those of a module from a file are plain tensors, which the export refuses.
                if not isinstance(tensor, torch.nn.Parameter):
                    parameter = torch.nn.Parameter(tensor.detach(), tensor.requires_grad)
                    part._c.setattr(name, parameter)
        method = scripted._c._get_method("forward")

        def forward(*args: Any, **kwargs: Any) -> Any:
            # A call of the module itself would look for its hooks, which export cannot follow.
            return method(*args, **kwargs)

        # The export names inputs by the parameters.
        forward.__signature__ = signature_of(method)  # type: ignore[attr-defined]
        self.forward = forward


def _traced(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.jit.ScriptModule:
    """The module as the calls that it makes of these inputs."""
    _check_inputs(model, args, kwargs)
    with _eval_mode(model), torch.no_grad(), quiet():
        return torch.jit.trace(model, args, example_kwarg_inputs=kwargs or None)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The parameters of a function; None for one that is not written in Python."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def export_for_inference(
    model: torch.nn.Module | torch.export.ExportedProgram | Any,
    example_args: Any,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> torch.export.ExportedProgram:
    """``torch.export.export`` of a module in eval mode; its training flags stay as they were.

    Parameters
    ----------
    model : a module, also a traced or scripted one, or a function of tensors. A program that is
        exported already comes back as it is, with the inputs that it was exported for; nothing else
        may be given beside it.
    example_args : positional inputs; a single tensor stands for one, and a mapping is
        `example_kwargs`.
    dynamic_shapes : as ``torch.export.export`` takes it.

    Raises
    ------
    TypeError : not a module or function, or the inputs do not fit its parameters.
    ValueError : the program depends on the data: a branch that asks for a tensor's values, for
        instance. The message names the line. Or its weights cannot be read or are on the "meta"
        device, or something is given beside an exported program.
    """
    if isinstance(model, torch.export.ExportedProgram):
        if len(example_args) or example_kwargs or dynamic_shapes is not None:
            raise ValueError(
                "relax.frontend.torch: an exported program has its example inputs and dynamic "
                "shapes; give the program alone, or its module() to export it for others"
            )
        return model
    if not isinstance(model, torch.nn.Module):
        if not callable(model):
            raise TypeError(
                f"relax.frontend.torch: expected a module or a function of tensors, got "
                f"{type(model).__name__}"
            )
        model = _FunctionModule(model)
    if isinstance(example_args, Mapping):
        if example_kwargs:
            raise TypeError(
                "relax.frontend.torch: example inputs by name are given twice; give positional "
                "ones and those by name, or one mapping"
            )
        example_args, example_kwargs = (), example_args
    args = (example_args,) if isinstance(example_args, torch.Tensor) else tuple(example_args)
    kwargs = dict(example_kwargs or {})
    if has_packed_weights(model):
        model = _traced(model, args, kwargs)
    if isinstance(model, torch.jit.ScriptModule):
        is_quantized = is_quantized_script(model)
        model = QuantizedProgram(model) if is_quantized else _ScriptedModule(model)
    _check_inputs(model, args, kwargs)
    _check_weights(model)
    args, kwargs = _distinct(taken_apart((args, kwargs)))
    written = io.StringIO()
    has_ones = dynamic_shapes is not None and _has_size_of_one((args, kwargs))
    with _eval_mode(model), _objects_as_parts(model), torch.no_grad(), quiet():
        try:
            with redirect_stderr(written), _ones_may_vary(has_ones):
                program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
        except Exception as error:
            # Whatever the export raises, the person wants to know where in the model.
            reason = explained(error, has_ones)
            if reason is None:
                raise
            raise reason from None
    # Only of a failure has the export something to say that is not for the reader.
    sys.stderr.write(written.getvalue())
    return program


def _distinct(inputs: Any) -> Any:
    """The inputs with a copy of each tensor that is there twice, which the export takes for one."""
    seen: set[int] = set()

    def once(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or id(leaf) not in seen:
            seen.add(id(leaf))
            return leaf
        return leaf.detach().clone()

    return pytree.tree_map(once, inputs)


def _check_inputs(model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    signature = _signature(model.forward)
    if signature is None:
        # Left to the export.
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        names = ", ".join(signature.parameters)
        raise TypeError(
            f"relax.frontend.torch: {len(args) + len(kwargs)} example inputs do not fit "
            f"{_name_of(model)}({names}): {error}"
        ) from None


def _check_weights(model: torch.nn.Module) -> None:
    for name, tensor in itertools.chain(model.named_parameters(), model.named_buffers()):
        if tensor.is_meta:
            raise ValueError(
                f"relax.frontend.torch: '{name}' has no values, since it is on the meta device; "
                "load the weights first (model.to_empty(device='cpu') makes room for them)"
            )


def _name_of(model: torch.nn.Module) -> str:
    if isinstance(model, _FunctionModule):
        return model.name
    if isinstance(model, _ScriptedModule):
        return f"{model.scripted.original_name}.forward"
    return f"{type(model).__name__}.forward"


@contextmanager
def _eval_mode(model: torch.nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    in_eval_mode(model)
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def _objects_as_parts(model: torch.nn.Module) -> Iterator[None]:
    """Inside, the module takes and gives parts in place of objects that pytrees do not know."""

    def before(_: Any, args: Any, kwargs: Any) -> Any:
        return assembled(args), assembled(kwargs)

    def after(_: Any, __: Any, result: Any) -> Any:
        return taken_apart(result)

    hooks = [
        model.register_forward_pre_hook(before, with_kwargs=True),
        model.register_forward_hook(after),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def quiet() -> Iterator[None]:
    """Without torch's own reports of the errors that are raised, and explained, here."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            # Recurrent layers cache a list of their weights.
            warnings.filterwarnings("ignore", message="The tensor attributes? .* assigned during")
            yield
    finally:
        logging.disable(before)


def _has_size_of_one(inputs: Any) -> bool:
    leaves = pytree.tree_leaves(inputs)
    return any(1 in leaf.shape for leaf in leaves if isinstance(leaf, torch.Tensor))


@contextmanager
def _ones_may_vary(has_ones: bool) -> Iterator[None]:
    """Inside, the export takes a size of one for an example of sizes, as it does larger ones."""
    if not has_ones:
        yield
        return
    settings: Any = torch.fx.experimental._config
    with settings.patch(backed_size_oblivious=True):
        yield


def explained(error: BaseException, has_ones: bool = False) -> Exception | None:
    """The error of an export as one line about the model, where the reason is known.

    has_ones : whether sizes vary of which an example is one.
    """
    where = _place_in_model(error)
    chain: BaseException | None = error
    while chain is not None:
        name = type(chain).__name__
        if name in ("GuardOnDataDependentSymNode", "DataDependentOutputException"):
            return ValueError(
                f"relax.frontend.torch: the program depends on the values of a tensor at {where}; "
                "write it with operators on tensors, such as torch.where, or have the parts around "
                'it compiled by torch.compile(backend="felix")'
            )
        if "__obj_flatten__" in str(chain):
            return ValueError(
                "relax.frontend.torch: the module keeps weights in objects that torch.export "
                "cannot read, as torch.ao.quantization.quantize_dynamic packs those of recurrent "
                "layers; leave these as they are, or quantise with "
                "torchao.quantization.quantize_, or from an export (PT2E)"
            )
        if name == "ConstraintViolationError" or "dynamic_shapes" in str(chain):
            text = f"relax.frontend.torch: dynamic_shapes: {_first_lines(chain)}"
            if has_ones and ("== 1" in text or "constant (1)" in text):
                text += "; the model asks whether a size is one: try examples of two"
            return ValueError(text)
        chain = chain.__cause__ or chain.__context__
    return None


def _first_lines(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:4])


def _place_in_model(error: BaseException) -> str:
    """The innermost line of the traceback that is not PyTorch's own, as text."""
    root = Path(torch.__file__).parent
    ours = Path(__file__).parent
    place = "an unknown line"
    traceback = error.__traceback__
    while traceback is not None:
        path = Path(traceback.tb_frame.f_code.co_filename)
        if root not in path.parents and ours not in path.parents:
            text = linecache.getline(str(path), traceback.tb_lineno).strip()
            place = f"{path.name}:{traceback.tb_lineno}" + (f" ({text})" if text else "")
        traceback = traceback.tb_next
    return place
