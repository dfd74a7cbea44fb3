"""Commands that tune operators and networks."""
