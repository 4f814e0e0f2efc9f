"""`rung doctor`: checks the installation and what it depends on."""
