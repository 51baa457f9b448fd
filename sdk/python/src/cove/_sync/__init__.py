# Made of _async/__init__.py by sdk/python/make_sync.py. Change that file, then run it.
"""The blocking client. The blocking one in _sync is made of these files by sdk/python/make_sync.py."""
