"""Publishing: where to and with which key, what is sent, and what the answer means. Nothing is sent twice."""
