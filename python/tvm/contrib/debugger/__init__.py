"""Running a graph node by node."""
