"""How what is to be told reaches people: a thread for each channel, and none of them waits for another."""
