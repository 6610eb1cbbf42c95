"""Benchmarks: each row measures Headrace and a named peer side by side in one run."""
