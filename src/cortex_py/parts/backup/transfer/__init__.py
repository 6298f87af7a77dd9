"""Export to plain files, and import of exports, notes and files of other programs."""
