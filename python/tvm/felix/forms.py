"""Parts of networks that can be computed in two forms: both are timed where they run.

A pass of the graph offers another form of a part: Winograd's of a convolution, Strassen's of a
product, one kernel of an attention (`relax.transform.Forms`). What a part takes is the difference
between the kernels of the network with it in either form, each with the seconds that it takes
inside a network. Before a search this tells which parts may be faster as they are: their kernels
are tasks, too. After it the faster form is taken, and the choice is kept beside the records.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tvm import relax
from tvm.runtime.files import read_json, write_atomically
from tvm.target import Target

from .compiler import CompiledNetwork, compile_network
from .network import Network
from .rounds import clearly_faster, kernel_rounds, typical
from .schedules import FORMS

__all__ = ["choose_forms", "find_rivals", "forget_choice"]

# A part that takes so much longer as it is, nothing tuned, is not searched in that form. Searches
# gain less than that over the library's schedules of products and convolutions.
_CLOSE = 1.25
# Which part of the other form's seconds the plain one may take at most in the end.
_MARGIN = 0.98


def find_rivals(
    networks: Sequence[Network], untuned: Sequence[CompiledNetwork], target: Target, folder: Path
) -> list[Network]:
    """Networks with those parts as they are that may be faster so, to be searched as well.

    A run that is continued goes on with those that it began with.

    Parameters
    ----------
    networks : with all parts in the forms that passes offer.
    untuned : the same, compiled without records.
    folder : of the run, which keeps the names of the parts.

    Raises
    ------
    ValueError : the folder's file of forms is damaged; the message names it.
    """
    path = folder / FORMS
    if (folder / "records.json").exists():
        close = _read_close(path) if path.exists() else []
    else:
        plain = [_as_they_are(network, network.forms) for network in networks if network.forms]
        compiled = [compile_network(network, target) for network in plain]
        seconds = _seconds_in_place([*untuned, *compiled]) if compiled else {}
        close = [
            name
            for name, (rewritten, as_it_is) in _part_seconds(networks, seconds).items()
            if typical(as_it_is) < _CLOSE * typical(rewritten)
        ]
        _write(path, target, close, [], {})
    return [
        _as_they_are(network, close)
        for network in networks
        if not set(close).isdisjoint(network.forms)
    ]


def choose_forms(
    folder: Path,
    target: Target,
    tuned: Sequence[CompiledNetwork],
    rivals: Sequence[CompiledNetwork],
) -> list[Network]:
    """The networks, each part in the form that is faster in place; the folder remembers.

    Parameters
    ----------
    folder : of the run.
    tuned : the networks, compiled with the folder's records.
    rivals : those that `find_rivals` found, compiled alike.
    """
    close = list(dict.fromkeys(name for rival in rivals for name in rival.network.options.plain))
    networks = [compiled.network for compiled in tuned]
    parts = _part_seconds(networks, _seconds_in_place([*tuned, *rivals]), close)
    plain = [
        name
        for name, (rewritten, as_it_is) in parts.items()
        if clearly_faster(as_it_is, rewritten, _MARGIN)
    ]
    _write(folder / FORMS, target, close, plain, parts)
    return [_as_they_are(network, plain) for network in networks]


def forget_choice(folder: Path, target: Target) -> None:
    """Leave every part in the form that passes offer; the folder remembers.

    Raises
    ------
    ValueError : the folder's file of forms is damaged; the message names it.
    """
    path = folder / FORMS
    if path.exists():
        _write(path, target, _read_close(path), [], {})


def _as_they_are(network: Network, names: Sequence[str]) -> Network:
    plain = tuple(name for name in names if name in network.forms)
    return network.with_options(replace(network.options, plain=plain))


def _seconds_in_place(networks: Sequence[CompiledNetwork]) -> dict[str, np.ndarray]:
    """Seconds of each kernel of the networks, which run in turns: the least of each round."""
    least: dict[str, np.ndarray] = {}
    for kernels in kernel_rounds(networks, lambda network: network.kernel_seconds(repeats=1)):
        for key, samples in kernels.items():
            least[key] = np.minimum(least.get(key, samples), samples)
    return least


def _part_seconds(
    networks: Sequence[Network],
    seconds: Mapping[str, np.ndarray],
    names: Sequence[str] | None = None,
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Seconds that parts take in the runs of all networks: rewritten, and as they are.

    A part that would make kernels that were not timed is left out, as nothing is known of them.
    """
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for network in networks:
        calls = _calls(network)
        for name in network.forms if names is None else names:
            if name not in network.forms:
                continue
            others = _calls(_as_they_are(network, [name]))
            forms = (calls - others, others - calls)
            if any(key not in seconds for form in forms for key in form):
                continue
            rewritten, as_it_is = (
                np.sum([n * seconds[key] for key, n in form.items()], axis=0) for form in forms
            )
            before = found.get(name, (0.0, 0.0))
            found[name] = (before[0] + rewritten, before[1] + as_it_is)
    return found


def _calls(network: Network) -> Counter[str]:
    """How often a run calls each kernel."""
    return Counter({group.key: group.weight for group in relax.fused_groups(network.mod)})


def _read_close(path: Path) -> list[str]:
    document = read_json(path)
    close = document.get("close") if isinstance(document, dict) else None
    if not isinstance(close, list) or not all(isinstance(name, str) for name in close):
        raise ValueError(f'{path}: expected names of forms under "close"')
    return close


def _write(
    path: Path,
    target: Target,
    close: Sequence[str],
    plain: Sequence[str],
    parts: Mapping[str, tuple[np.ndarray, np.ndarray]],
) -> None:
    seconds = {
        name: {"rewritten": typical(a), "plain": typical(b)} for name, (a, b) in parts.items()
    }
    document = {
        "target": str(target),
        "close": list(close),
        "plain": list(plain),
        "seconds": seconds,
    }
    write_atomically(path, json.dumps(document, indent=1) + "\n")
