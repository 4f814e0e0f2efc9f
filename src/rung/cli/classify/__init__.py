"""Commands that classify failures and run detectors."""
