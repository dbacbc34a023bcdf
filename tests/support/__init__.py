"""What several tests use: invented data, hostile values, neighbours, services, tiers, fixed noise."""
