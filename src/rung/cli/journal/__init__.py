"""Commands that read and maintain the journal: report, log, show, journal, backtest, resume."""
