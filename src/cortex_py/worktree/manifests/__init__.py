"""Package manifests and lock files: dependencies, a project's own version, and version constraints."""
