"""What tests of several folders share; ``from helpers.each import each`` imports it."""
