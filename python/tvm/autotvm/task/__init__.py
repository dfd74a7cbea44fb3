"""Templates, their spaces, and the configurations that they are run with."""

from .context import get_config
from .dispatcher import (
    ApplyConfig,
    ApplyFixedConfig,
    ApplyGraphBest,
    ApplyHistoryBest,
    DispatchContext,
    FallbackContext,
    clear_fallback_cache,
)
from .relay_integration import extract_from_multiple_program, extract_from_program
from .space import ConfigEntity, ConfigSpace, FallbackConfigEntity, InstantiationError
from .task import (
    Task,
    args_to_workload,
    compute_flop,
    create,
    deserialize_args,
    serialize_args,
    template,
)
from .topi_integration import get_workload, register_topi_compute, register_topi_schedule
