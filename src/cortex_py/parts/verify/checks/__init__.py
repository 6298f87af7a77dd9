"""What can be looked up for a claim. Each check holds or fails, and says where that was seen."""
