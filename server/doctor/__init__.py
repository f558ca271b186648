"""What keeps a desk from being served, and what to do about it. Looking changes nothing and records nothing."""
