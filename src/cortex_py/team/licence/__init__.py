"""Licence texts that an operator signs, and the table of tools that need one."""
