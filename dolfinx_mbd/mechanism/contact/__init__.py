"""Contacts, joints with clearance, end stops and gears."""
