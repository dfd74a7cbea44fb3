"""Commands that tune networks."""
