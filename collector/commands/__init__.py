"""The commands of `groundwatch`, one file each: `add_arguments(parser)` and `run(args) -> exit code`."""
