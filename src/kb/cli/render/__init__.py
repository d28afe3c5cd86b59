"""What a command found, as lines for a person; the JSON form is the record itself."""
