"""Bodies that rotate steadily: frequencies, whirl, Campbell diagrams, loss of stability."""
