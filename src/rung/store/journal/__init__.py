"""Journal: the append-only event log, its writer thread, retention and export."""
