"""Schedules that serve any processor."""

from .default import *
from .schedule import *
