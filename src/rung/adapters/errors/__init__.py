"""Error readers: each turns the exceptions of one SDK or library into evidence."""
