"""The page: what it shows as values (`models`), as HTML for browsers without JavaScript (`views`), and its files.

`http` calls the library and serves what this package makes. Everything in `static` is written by hand and served as it
is: no build step, no library, nothing from another machine.
"""
