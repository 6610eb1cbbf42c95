"""The archive on disk: catalog, mark file, segment files, and what keeps and mends them."""
