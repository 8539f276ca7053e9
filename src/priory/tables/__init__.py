"""Tables in memory, of any kind, as one `Table`; dates and their parts."""
