"""Back ends that know users: servers elsewhere, asked about logins beside the loop's work."""
