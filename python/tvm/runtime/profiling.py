"""Where the time of a program goes: timers, metrics, and reports of the calls of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import tvm._ffi

from . import _ffi_profiling_api as _ffi_api
from .device import Device
from .module import Module
from .object import Object

__all__ = [
    "Count",
    "DeviceWrapper",
    "Duration",
    "MetricCollector",
    "Percent",
    "PerfMetricCollector",
    "Ratio",
    "Report",
    "Timer",
    "profile_function",
]


class _Metric(Object):
    __slots__ = ()

    def __float__(self) -> float:
        return float(_ffi_api.MetricValue(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_ffi_api.MetricValue(self)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and float(self) == float(other)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash((type(self), float(self)))


@tvm._ffi.register_object("runtime.profiling.Duration")
class Duration(_Metric):
    """A time."""

    __slots__ = ()

    def __init__(self, microseconds: float) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Duration, microseconds)

    @property
    def microseconds(self) -> float:
        return float(self)


@tvm._ffi.register_object("runtime.profiling.Percent")
class Percent(_Metric):
    """A share of the total, from 0 to 100."""

    __slots__ = ()

    def __init__(self, percent: float) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Percent, percent)

    @property
    def percent(self) -> float:
        return float(self)


@tvm._ffi.register_object("runtime.profiling.Count")
class Count(_Metric):
    """A number of events or calls."""

    __slots__ = ()

    def __init__(self, value: int) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Count, value)

    @property
    def value(self) -> int:
        return int(_ffi_api.MetricValue(self))


@tvm._ffi.register_object("runtime.profiling.Ratio")
class Ratio(_Metric):
    """A quotient of two quantities. Ratios of several calls are not added up."""

    __slots__ = ()

    def __init__(self, ratio: float) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Ratio, ratio)

    @property
    def ratio(self) -> float:
        return float(self)


@tvm._ffi.register_object("runtime.profiling.DeviceWrapper")
class DeviceWrapper(Object):
    """A device where an object is needed, such as in a map that goes to C++."""

    __slots__ = ()

    def __init__(self, device: Device) -> None:
        self.__init_handle_by_constructor__(_ffi_api.DeviceWrapper, device)

    @property
    def device(self) -> Device:
        return _ffi_api.DeviceWrapperDevice(self)


@tvm._ffi.register_object("runtime.profiling.Report")
class Report(Object):
    """The calls of one run, with what was measured of each. Printing it shows a table.

    Parameters
    ----------
    calls : one mapping a call, from the name of a column to a metric or a text. The names
        "Name", "Duration (us)", "Percent", "Device", "Count" and "Argument Shapes" come first.
    device_metrics : totals by name of the device, such as "cpu0".
    configuration : what was run, and how.
    """

    __slots__ = ()

    def __init__(
        self,
        calls: Sequence[Mapping[str, Any]],
        device_metrics: Mapping[str, Mapping[str, Any]] | None = None,
        configuration: Mapping[str, Any] | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Report,
            [dict(call) for call in calls],
            {name: dict(metrics) for name, metrics in (device_metrics or {}).items()},
            dict(configuration or {}),
        )

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls in the order in which they ended."""
        return [dict(call.items()) for call in _ffi_api.ReportCalls(self)]

    @property
    def device_metrics(self) -> dict[str, dict[str, Any]]:
        return {
            name: dict(metrics.items())
            for name, metrics in _ffi_api.ReportDeviceMetrics(self).items()
        }

    @property
    def configuration(self) -> dict[str, Any]:
        return dict(_ffi_api.ReportConfiguration(self).items())

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """The report as a text table.

        Parameters
        ----------
        sort : longest calls first, instead of the order of the calls.
        aggregate : one line for calls that agree in name, device and argument shapes.
        col_sums : add a line of sums.
        """
        return _ffi_api.AsTable(self, sort, aggregate, col_sums)

    def csv(self) -> str:
        """One line a call, below a line with the names of the columns."""
        return _ffi_api.AsCSV(self)

    def json(self) -> str:
        """Everything as JSON, which `from_json` reads."""
        return _ffi_api.AsJSON(self)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report that `json` wrote.

        Raises
        ------
        ValueError : the text is not a report; the message has the position.
        """
        return _ffi_api.FromJSON(text)

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return Report.from_json, (self.json(),)


@tvm._ffi.register_object("runtime.profiling.MetricCollector")
class MetricCollector(Object):
    """Measures more than time during each call of a profiled run."""

    __slots__ = ()


@tvm._ffi.register_object("runtime.profiling.PerfMetricCollector")
class PerfMetricCollector(MetricCollector):
    """Counts events of the processor on the thread that makes the calls.

    Parameters
    ----------
    events : of "cycles", "instructions", "cache-references", "cache-misses", "branches",
        "branch-misses", "page-faults" and "context-switches"; user code only.

    Raises
    ------
    ValueError : unknown event; the message lists the known ones. When a run begins, RuntimeError if
        this machine does not give access to a counter.
    """

    __slots__ = ()

    def __init__(self, events: Iterable[str] = ("cycles", "instructions", "cache-misses")) -> None:
        self.__init_handle_by_constructor__(_ffi_api.PerfMetricCollector, list(events))


class Timer:
    """Time of the work queued on a device, as a context.

    >>> with Timer(tvm.cpu()) as timer:
    ...     kernel(a, b)
    >>> timer.seconds
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._timer: Object | None = None

    def __enter__(self) -> Timer:
        self._timer = tvm.get_global_func("profiling.start_timer")(self._device)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _ffi_api.TimerStop(self._timer)

    @property
    def seconds(self) -> float:
        """Time between entry and exit; waits for the device if it is still at work."""
        if self._timer is None:
            raise RuntimeError("Timer: nothing was measured; use it in a with statement")
        return _ffi_api.TimerElapsedNanos(self._timer) * 1e-9


def profile_function(
    mod: Module,
    dev: Device,
    collectors: Sequence[MetricCollector] = (),
    func_name: str | None = None,
    warmup_iters: int = 10,
) -> Callable[..., dict[str, Any]]:
    """A function that calls a function of the module once and returns what was measured.

    Parameters
    ----------
    dev : device the function runs on.
    func_name : the module's entry function if left out.
    warmup_iters : calls before the measured one.

    Returns
    -------
    Callable from the function's arguments to the metrics by name, "Duration (us)" among them.
    """
    profiler = _ffi_api.ProfileFunction(
        mod,
        func_name or mod.entry_name,
        dev.device_type,
        dev.device_id,
        warmup_iters,
        list(collectors),
    )

    def profile(*args: Any) -> dict[str, Any]:
        return dict(profiler(*args).items())

    return profile
