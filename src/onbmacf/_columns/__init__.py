"""Columns that are measured as numbers but hold something else: dates, times, durations, periods, decimals."""
