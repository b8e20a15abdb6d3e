"""What all experiments share: options and items, rows of summary.csv, looks and figures."""
