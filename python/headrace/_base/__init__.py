"""Parts that every room stands on."""
