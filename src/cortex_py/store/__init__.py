"""The store: records, their text index and their vectors, in one database.

The domain speaks to `Store`; which engine is behind it shows only in the `sqlite*` modules.
"""
