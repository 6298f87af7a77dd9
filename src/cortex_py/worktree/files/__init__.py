"""Files of a project: listing and ignore rules, decoding, selection for a scan, roles, and change stamps."""
