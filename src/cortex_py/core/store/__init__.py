"""The store: records, their text index and their vectors in one database.

The rest of Cortex uses `store.Store`. `database` is the contract of an engine, `sqlite` and `postgres` are the engines,
`migrations` is the schema. `tables` and `graph` read and write rows, `search` finds candidates for a query, `documents`
turns a space into portable documents and back.
"""
