"""What can be understood alone, beside the kernel: each folder holds one idea of the product."""
