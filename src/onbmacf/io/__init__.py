"""Files to tables and models: what the command line, a service and notebooks share."""
