"""The git station: commits, trees, blobs and differences, read without a checkout."""
