"""Jobs: what the `pipeline` executor hands to its workers. See `simengine_scheduler/executors/pipeline.py`."""
