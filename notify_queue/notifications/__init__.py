"""What a client asks for: to schedule a notification, to look at one."""
