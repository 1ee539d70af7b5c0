"""Where answers come from: one file per kind of target."""
