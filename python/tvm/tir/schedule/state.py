"""What a schedule remembers: functions as trees, what its variables stand for, its history."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import tvm.error
from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir import IRModule, PrimExpr

from ..analysis import verify_well_formed
from ..block import Block
from ..expr import IntImm, Var, const
from ..function import PrimFunc
from ..stmt import For
from ..stmt_functor import substitute
from .access import vars_of
from .dataflow import prepare
from .instruction import Instruction, InstructionKind, map_rvs
from .parallelism import check_parallelism
from .random_variables import RV, BlockRV, LoopRV
from .trace import Trace
from .tree import BlockNode, FuncTree, Loop

__all__ = ["State"]

T = TypeVar("T")
S = TypeVar("S", bound="State")
_LEVELS = ("detail", "fast", "none")


class State:
    """Base of schedules: carries out steps, all of each or nothing, and records them."""

    def __init__(
        self,
        mod: IRModule | PrimFunc,
        seed: int | None,
        debug_mask: str | int,
        error_render_level: str,
    ) -> None:
        if isinstance(mod, PrimFunc):
            mod = IRModule({"main": mod})
        if not isinstance(mod, IRModule):
            raise tvm.error.TypeError(
                f"Schedule: expected an IRModule or a PrimFunc, got {type(mod).__name__}"
            )
        if error_render_level not in _LEVELS:
            raise tvm.error.ValueError(
                f"Schedule: error_render_level is one of {', '.join(_LEVELS)}, got "
                f"{error_render_level!r}"
            )
        masks: dict[str | int, int] = {"none": 0, "all": -1}
        if not isinstance(debug_mask, int) and debug_mask not in masks:
            raise tvm.error.ValueError(
                f'Schedule: debug_mask is "all", "none" or a number, got {debug_mask!r}'
            )
        self._mod = mod.clone()
        self._checks = bool(masks.get(debug_mask, 1) if isinstance(debug_mask, str) else debug_mask)
        self._level = error_render_level
        self._seed(seed)
        self._trees: dict[str, FuncTree] = {}
        self._nodes: dict[RV, BlockNode | Loop] = {}
        self._numbers: dict[Var, int] = {}
        self._trace = Trace()
        self._working_on: str | None = None

    def _seed(self, seed: int | None) -> None:
        if seed is not None and (not isinstance(seed, int) or seed < -1):
            raise tvm.error.ValueError(f"Schedule: the seed is a number from 0 on, got {seed!r}")
        self._random = random.Random(None if seed == -1 else seed)

    # Reading

    @property
    def mod(self) -> IRModule:
        """The module as it is now. Changing it does not change the schedule."""
        result = self._mod.clone()
        for name, tree in self._trees.items():
            if tree.changed:
                result[name] = tree.to_func()
        return result

    @property
    def trace(self) -> Trace:
        """What was done so far."""
        return self._trace

    @property
    def func_working_on(self) -> str | None:
        """Name of the function that :meth:`get_block` looks in, as set by :meth:`work_on`."""
        return self._working_on

    def work_on(self, func_name: str) -> None:
        """Let :meth:`get_block` look in a function when it is not told which.

        Raises
        ------
        ScheduleError : the module has no such function.
        """
        self._tree(func_name)
        self._working_on = func_name

    def get(self, rand_var_or_sref: RV | PrimExpr) -> Block | For | IntImm:
        """The block or loop that a variable stands for, or the value of an expression."""
        rv = rand_var_or_sref
        if isinstance(rv, BlockRV):
            return self._block(rv)[1].to_block()
        if isinstance(rv, LoopRV):
            stmt = self._loop(rv)[1].to_stmt()
            assert isinstance(stmt, For)
            return stmt
        return const(self._number(rv), rv.dtype)

    def copy(self: S) -> S:
        """A schedule that goes its own way from here; variables stand for the same in both."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        twins: dict[Any, Any] = {}
        other._trees = {}
        for name, tree in self._trees.items():
            other._trees[name], nodes = tree.copy()
            twins.update(nodes)
        # What is gone keeps its node, which is in no tree.
        other._nodes = {rv: twins.get(node, node) for rv, node in self._nodes.items()}
        other._numbers = dict(self._numbers)
        other._trace = Trace(self._trace.insts, self._trace.decisions)
        other._random = random.Random(self.fork_seed())
        return other

    def fork_seed(self) -> int:
        """A seed for another schedule, drawn from this one's."""
        return self._random.randrange(1, 1 << 31)

    def show(self) -> None:
        """Print the module and the trace."""
        print(self.mod)
        print(self.trace)

    # Resolving variables

    def _tree(self, func_name: str) -> FuncTree:
        if not isinstance(func_name, str):
            raise tvm.error.TypeError(f"expected the name of a function, got {func_name!r}")
        tree = self._trees.get(func_name)
        if tree is not None:
            return tree
        if func_name not in self._mod or not isinstance(self._mod[func_name], PrimFunc):
            names = ", ".join(
                str(var.name_hint)
                for var, func in self._mod.functions_items()
                if isinstance(func, PrimFunc)
            )
            raise ScheduleError(
                f"the module has no function {func_name} of blocks; it has {names or 'none'}"
            )
        tree = FuncTree(func_name, self._mod[func_name])
        prepare(tree)
        try:
            check_parallelism(tree)
        except ScheduleError as error:
            tree.doubt = str(error)
        self._trees[func_name] = tree
        return tree

    def _tree_of(self, node: BlockNode | Loop, what: str) -> FuncTree:
        root: Any = node
        while root.parent is not None:
            if not any(child is root for child in root.parent.children):
                break
            root = root.parent
        for tree in self._trees.values():
            if tree.root is root:
                return tree
        raise ScheduleError(
            f"{what} {node.name} is gone; a primitive took it apart or moved it. Ask for it again"
        )

    def _block(self, rv: BlockRV) -> tuple[FuncTree, BlockNode]:
        node = self._nodes.get(rv) if isinstance(rv, BlockRV) else None
        if not isinstance(node, BlockNode):
            raise tvm.error.TypeError(
                f"expected a block of this schedule, as get_block returns it, got {_show(rv)}"
            )
        return self._tree_of(node, "block"), node

    def _loop(self, rv: LoopRV) -> tuple[FuncTree, Loop]:
        node = self._nodes.get(rv) if isinstance(rv, LoopRV) else None
        if not isinstance(node, Loop):
            raise tvm.error.TypeError(
                f"expected a loop of this schedule, as get_loops returns it, got {_show(rv)}"
            )
        return self._tree_of(node, "loop"), node

    def _loops(self, rvs: Sequence[LoopRV]) -> tuple[FuncTree, list[Loop]]:
        found = [self._loop(rv) for rv in rvs]
        if not found:
            raise ScheduleError("no loops given; give at least one")
        if any(tree is not found[0][0] for tree, _ in found):
            raise ScheduleError("the loops are in different functions")
        return found[0][0], [loop for _, loop in found]

    def _node(self, rv: BlockRV | LoopRV) -> tuple[FuncTree, Any]:
        return self._loop(rv) if isinstance(rv, LoopRV) else self._block(rv)

    def _number(self, value: Any) -> int:
        """The value of a number, or of an expression of sampled ones."""
        if isinstance(value, bool) or not (
            isinstance(value, PrimExpr) or hasattr(value, "__index__")
        ):
            raise tvm.error.TypeError(
                f"expected a whole number or an expression of sampled ones, got {value!r}"
            )
        if not isinstance(value, PrimExpr):
            return int(value)
        used = vars_of(value)
        unknown = [var for var in used if var not in self._numbers]
        if unknown:
            raise ScheduleError(f"{unknown[0]} in {value} was not sampled by this schedule")
        known = {var: const(self._numbers[var], var.dtype) for var in used}
        result = Analyzer().simplify(substitute(value, known))
        if not isinstance(result, IntImm):
            raise ScheduleError(f"{value} is {result}, which is no whole number")
        return int(result.value)

    # Carrying out

    def _step(
        self,
        method: str,
        arguments: Mapping[str, Any],
        action: Callable[[], tuple[FuncTree | None, T]],
    ) -> T:
        """The result of `action`, of which nothing stays if it or a check after it fails.

        `action` returns the function it changed, or None, and its result.
        """
        kept = [tree.save() for tree in self._trees.values()]
        tree: FuncTree | None = None
        try:
            tree, result = action()
            if tree is not None:
                tree.changed = True
                _check_parallelism(tree)
                if self._checks:
                    verify_well_formed(tree.to_func())
        except ScheduleError as error:
            self._undo(kept)
            raise ScheduleError(self._explain(method, arguments, error)) from None
        except BaseException:
            self._undo(kept)
            raise
        return result

    def _do(self, method: str, arguments: dict[str, Any], act: Callable[[], FuncTree]) -> None:
        self._step(method, arguments, lambda: (act(), None))
        self._record(method, arguments, [])

    @staticmethod
    def _undo(kept: list[Callable[[], None]]) -> None:
        for restore in kept:
            restore()

    def _explain(self, method: str, arguments: Mapping[str, Any], error: ScheduleError) -> str:
        if self._level == "none":
            return f"{method}: not legal here"
        text = f"{method}: {error}"
        if self._level == "fast":
            return text
        for tree in self._trees_of(arguments):
            text += f"\nThe function {tree.name} is\n{tree.to_func().script()}"
        return text

    def _trees_of(self, arguments: Mapping[str, Any]) -> list[FuncTree]:
        """Functions that the arguments of a step are in."""
        if arguments.get("func_name") in self._trees:
            return [self._trees[arguments["func_name"]]]
        found: list[FuncTree] = []

        def collect(rv: Any) -> Any:
            node = self._nodes.get(rv)
            found.extend(
                tree
                for tree in self._trees.values()
                if node is not None and node.is_under(tree.root)
            )
            return rv

        map_rvs(list(arguments.values()), collect)
        return list(dict.fromkeys(found))

    def _record(
        self, method: str, arguments: dict[str, Any], outputs: Sequence[Any], decision: Any = None
    ) -> list[Any]:
        """Add a step to the trace; nodes and numbers it returned become variables."""
        rvs: list[Any] = []
        for output in outputs:
            rv: Any
            if isinstance(output, BlockNode):
                rv = BlockRV()
                self._nodes[rv] = output
            elif isinstance(output, Loop):
                rv = LoopRV()
                self._nodes[rv] = output
            elif isinstance(output, LoopRV):
                rv = output
            else:
                rv = Var(f"v{self._outputs() + len(rvs)}")
                self._numbers[rv] = int(output)
            rvs.append(rv)
        kind = InstructionKind.of_method(method)
        self._trace.append(Instruction(kind, arguments, rvs), decision)
        return rvs

    def _outputs(self) -> int:
        return sum(len(inst.outputs) for inst in self._trace.insts)


def _check_parallelism(tree: FuncTree) -> None:
    try:
        check_parallelism(tree)
    except ScheduleError as error:
        if str(error) != tree.doubt:
            raise
        raise ScheduleError(
            f"{error}. The loop was given so; make it serial before the function is scheduled"
        ) from None


def _show(value: Any) -> str:
    return f"a {type(value).__name__}"
