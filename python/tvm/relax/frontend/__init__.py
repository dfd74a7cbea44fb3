"""Importers: one package for each framework, imported when asked for."""
