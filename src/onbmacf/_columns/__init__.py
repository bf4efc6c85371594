"""Columns that are numbers in other clothes: dates, times, durations, periods, decimals."""
