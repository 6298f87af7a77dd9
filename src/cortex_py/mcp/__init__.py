"""The names under which the published API imports the server of the embedding tools."""
