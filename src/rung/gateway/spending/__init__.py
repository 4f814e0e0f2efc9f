"""Money of the gateway: reservations, metering of attempts, and the ledger of what was spent."""
