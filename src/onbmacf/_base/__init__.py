"""What every layer stands on: argument checks, files, memory, compiled code, processes, array types, enums."""
