"""`headrace cluster demo`: three members on this machine, and what becomes of them when their leader is killed."""
