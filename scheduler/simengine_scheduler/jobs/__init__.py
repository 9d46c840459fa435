"""Jobs of executor `pipeline`: runs of calls that workers take from each other.

kinds    kernels that run again and again on other arguments
cutting  a program order becomes jobs
queues   a queue of jobs for each worker
"""

from .kinds import JobArguments, JobKind, JobLaunch

__all__ = [
    "JobArguments",
    "JobKind",
    "JobLaunch",
]
