"""One module per group of tables: their schema steps, and the statements that read and write them."""
