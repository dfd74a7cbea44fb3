"""Records of what was measured."""

from .database import Database, PyDatabase, TuningRecord, Workload
from .json_database import JSONDatabase
from .memory_database import MemoryDatabase
from .other_databases import OrderedUnionDatabase, ScheduleFnDatabase, UnionDatabase

create = Database.create
