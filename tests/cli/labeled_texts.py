"""Texts of two classes."""

PETS = ["cat dog pet", "cats dogs pet", "dog cat mat", "pet cat vet", "dog vet pet"] * 2
MONEY = ["stock bank", "bank price stock", "price market", "market bank", "bank stock"] * 2
PAGE = "<i>page</i>"  # a class whose name needs care in HTML
EVIL = "<script>alert('x')</script>"


def fit(data, model, out, *more, rank="2"):
    from ssnmf_fast.cli import main

    size = [] if rank is None or model in ("ts-nmf", "few-labels") else ["--rank", rank]
    given = ["--model", model, "--out", str(out), "--min-df", "1", *size]
    return main(["fit", str(data), *given, *more])
