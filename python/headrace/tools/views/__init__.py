"""What a person sees of a driver (`rich` tables) and what a program sees of it (JSON objects)."""
