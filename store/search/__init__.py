"""Recall: queries to terms, terms to ranked memories."""
