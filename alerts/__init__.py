"""What deserves a person's attention, and the port that it is told through."""
