"""How an agent's calls travel to a model and back."""
