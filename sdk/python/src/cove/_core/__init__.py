"""The protocol without I/O: bytes in, events out. Shared by the blocking and the asyncio client."""
