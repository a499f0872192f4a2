"""English judging: rules decide what becomes of a statement, given the known facts."""
