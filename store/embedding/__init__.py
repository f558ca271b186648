"""Text to vectors: the bundled model, an OpenAI-compatible address, and loading them off every call's path."""
