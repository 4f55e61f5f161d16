"""Taxes."""

VAT_PERCENT = 16


def vat(cents: int) -> int:
    return cents * VAT_PERCENT // 100
