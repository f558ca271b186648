"""The HTTP transport: Streamable HTTP at `/mcp`, HTTP+SSE at `/sse` and `/messages/`, `/healthz`, on one port.

A request comes through `gate`, which decides whose it is or refuses it with one of the bodies in `refusals`; then
`endpoints` hands it to the SDK's transport of its path. `sessions` knows who opened what, `serving` is the life of
the process, `lines` the patience with a connection.
"""
