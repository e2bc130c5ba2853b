"""What every family stands on: Blocks (space), iterate (time), Certificate (truth), and the base of the estimators."""
