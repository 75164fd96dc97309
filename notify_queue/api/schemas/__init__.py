"""What goes in and out as JSON, field by field."""
