"""Random calls of functions and estimators: nothing may crash, hang or be silently wrong.

    cd tests
    python -m random_calls --cases 100000 --workers 2
    python -m random_calls --seconds 60
    python -m random_calls --seed 0 --case 1234
    python -m random_calls bits --cases 200
    python -m random_calls forms --seed 40

It needs ``python -m pip install 'ssnmf-fast[test,dask]'``.  "calls": legal ones are checked against
dense NumPy and SciPy, and forms of labels against plain ones; illegal ones must raise ValueError or
TypeError.  "bits": legal calls give the same ones with any number of threads, wherever arrays lie.
"forms": every argument that takes an array takes or refuses every form of it, of which every so
many are tried as the seed says.  Batches run in processes of their own: a signal, or a batch that
takes too long, is a failure of the case it was at.
"""
