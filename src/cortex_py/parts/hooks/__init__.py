"""Memory without being asked for: what the hooks of AI clients give to a session, and what they keep of its turns.

`cortex hook` runs `front`, which uses the standard library alone and asks a warm process of the same home (`warm`): a
running server, or the `helper` that the front starts; while none is, `cold` and `prepared` answer. In the warm process
`service` chooses what to give, `frame` lays it out, `turns` keeps the raw turns, and `staging` reads them later and
stages what the `gate` finds worth keeping. `dialects` knows what each client sends and expects.
"""
