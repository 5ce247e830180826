"""The daemon's own durable memory: sightings, intents, decisions, the lease, what operators did.

Every failure leaves as LedgerUnusableError: no write, no request (rule 20).
"""
