"""From relay to what runs."""

from .executor import Executor, Runtime
