"""Jobs: what the `pipeline` executor hands to its workers. See `scheduler/executors/pipeline.py`."""
