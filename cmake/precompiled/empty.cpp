// A precompiled header needs one source to belong to; it has nothing of its own.
