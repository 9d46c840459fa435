"""Compiled code of the scheduler, in C++, and what builds it. Python issues calls where there is no compiler.

hazards.h       which calls in flight a call must come after
marks.h         events behind calls, by which their ends are known
streams.h       which stream a call joins, and which waits are needed
driver_calls.h  functions of the driver, and calls as it takes them
launcher.h      the calls of the driver, and the log of them
launch_threads.h  the same calls by several threads
issuer.h        the window: what comes after what, on which stream
polling.h       the window of ACS-SW, whose calls wait until the host has seen others end
pieces.h        runs of calls that come again, each launched as one graph
learning.h      which runs of calls come so often that a graph pays
graphs.h        builds these graphs
apart.h         whether calls of different emitters conflict
plans.h         plans of fixed lists
issuer.cpp      its functions for Python
issuer          the same functions in Python
pieces          the runs of calls in Python
written         functions of a driver that are written in Python
programs        lists of which counts choose the calls
feed.h          which emitter's call is next
intake.h        numbers and definitions of calls, read from Python's objects
intake.cpp      functions of both for Python
intake          numbers of calls in Python, by these functions
compiling       finds the machine's compiler, and compiles shared libraries
cache           compiled code on disk
files           files that are replaced as a whole
"""
