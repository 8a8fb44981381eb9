"""The models, by where their code comes from."""
