"""What must not be stored, who may read or write what, encryption primitives, and the audit chain.

`secrets` and `personal` find secrets and personal data; `policy` applies the settings to every text that is stored.
Import the module you need.
"""
