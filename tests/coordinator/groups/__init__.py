"""What groups are made of: subscriptions, patterns, members."""
