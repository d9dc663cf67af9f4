"""What bench/compare.py measures: workloads, who runs them, how they are timed, how results are drawn."""
