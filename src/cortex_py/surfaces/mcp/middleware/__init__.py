"""What every request of the protocol passes: errors, access and audit, limits, retries, logs, traces, metrics."""
