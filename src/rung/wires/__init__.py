"""Provider wire formats as values: request and response bodies, event streams, and the splicing of streams. No HTTP."""
