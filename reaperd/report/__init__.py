"""What a pass did, told to machines and people. Each module reads the report and nothing else."""
