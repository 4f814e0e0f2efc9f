"""Time limits of blocking and async attempts, and reports made from inside an attempt."""
