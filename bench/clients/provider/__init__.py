"""A small provider with eighteen faults. It shares no code with the lab, so that one does not hide mistakes of the other."""
