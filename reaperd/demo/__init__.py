"""The whole story on an embedded AWS: no account, no credentials, nothing left behind."""
