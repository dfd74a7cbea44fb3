"""Patterns of single libraries."""
