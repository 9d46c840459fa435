"""The command line: `simengine run | bench | trace | info`."""
