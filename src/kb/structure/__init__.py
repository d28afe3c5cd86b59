"""Blobs to spans: parsing, normalised fingerprints, and what one blob says by itself."""
