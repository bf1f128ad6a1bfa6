"""The experiments of `klamm lab`: run for real, and judged on figures that never were."""
