"""Looking into graphs while they run."""
