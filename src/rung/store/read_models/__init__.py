"""Read models: tables derived from the events, and the projector that derives them."""
