"""Where the schedules of a search come from."""

from .space_generator import (
    PostOrderApply,
    PySpaceGenerator,
    ScheduleFn,
    SpaceGenerator,
    SpaceGeneratorUnion,
    create,
)
