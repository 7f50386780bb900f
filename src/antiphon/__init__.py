"""Antiphon: call and response.  Tools, formats, agents, data and training of tool-using models."""
