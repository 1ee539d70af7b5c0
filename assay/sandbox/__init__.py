"""Foreign Python source, run in a child process that can do no harm."""
