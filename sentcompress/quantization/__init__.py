"""How vectors are stored: an orthogonal turn, a number of dimensions, and a number format with the model's ranges."""
