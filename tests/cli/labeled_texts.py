"""Texts of two classes."""

PETS = ["cat dog pet", "cats dogs pet", "dog cat mat", "pet cat vet", "dog vet pet"] * 2
MONEY = ["stock bank", "bank price stock", "price market", "market bank", "bank stock"] * 2
PAGE = "<i>page</i>"  # a class whose name needs care in HTML
EVIL = "<script>alert('x')</script>"
