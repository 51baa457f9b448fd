"""The asyncio client. The blocking one in _sync is made of these files by sdk/python/make_sync.py."""
