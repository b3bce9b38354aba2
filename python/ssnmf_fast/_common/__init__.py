"""Small things that every room uses: warnings, random generators, files that appear whole."""
