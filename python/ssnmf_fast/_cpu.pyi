levels: tuple[str, ...]  # of the processor and the operating system
built_levels: tuple[str, ...]  # of this installation
