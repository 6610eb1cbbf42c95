"""`python -m headrace.demo`: the product in a minute, with real data. `make demo` sets it up and runs it."""
