"""What the commands do, as library functions: train, predict, explain, evaluate, update, out of core."""
