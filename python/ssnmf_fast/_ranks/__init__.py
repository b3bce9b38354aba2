"""The number of components: what a choice is, and the rule for texts."""
