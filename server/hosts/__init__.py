"""Hosts, the programs that start or call a server: where each keeps its servers, and what an entry looks like."""
