"""Sessions of command-line agents: their files, and the command line that starts or continues one."""
