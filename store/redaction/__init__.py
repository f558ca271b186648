"""Taking content away for good: what an id covers, what stays of it, and every place where it left a trace."""
