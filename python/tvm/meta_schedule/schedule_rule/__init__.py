"""Rules that turn one schedule into several."""

from .cpu_rules import (
    AddRFactor,
    ApplyCustomRule,
    AutoInline,
    InlineConstantScalars,
    MultiLevelTiling,
    ParallelizeVectorizeUnroll,
    RandomComputeLocation,
    ReuseType,
)
from .schedule_rule import PyScheduleRule, ScheduleRule

create = ScheduleRule.create
