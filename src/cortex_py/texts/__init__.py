"""Reading of texts without a store: sentences and their cues, YAML and front matter."""
