"""The knowledge graph: the entities that memories mention, and the relationships between them.

`service` is the entry point; its operations are in `entities`, `relationships` and `traversal`. `writer` adds what a
memory states when it is stored, and `reading` extracts that from the text.
"""
