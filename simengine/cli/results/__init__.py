"""How results are shown and written.

output      the console, and bars of progress
result_file JSON, on the console or in a file
machine     hardware and versions, for result files
"""
