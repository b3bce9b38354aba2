"""The number of components: results of choices, and the rule for texts."""
