"""Bridges to what other projects provide."""
