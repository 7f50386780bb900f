"""Antiphon: call and response.  Tools, formats, agents, data and training of tool-using models."""

__version__ = "0.1.0"
