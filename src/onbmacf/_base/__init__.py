"""What every layer stands on: argument checks, files, memory, threads, processes, array types, enums."""
