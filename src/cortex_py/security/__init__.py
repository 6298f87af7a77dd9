"""Security: what must not be stored, who may read, and what was done. Import the module you need."""
