"""Helpers for tests of spaces and searches."""
