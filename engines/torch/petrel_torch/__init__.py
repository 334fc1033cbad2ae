"""One rank of petrel's torch engine: a model, its moments and the calls of the port of engines."""
