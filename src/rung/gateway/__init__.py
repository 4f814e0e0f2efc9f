"""The gateway: recovery for any agent, by changing one URL."""
