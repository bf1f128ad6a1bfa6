"""The documentation, run: every code block of README.md and docs/*.md, as a reader would."""
