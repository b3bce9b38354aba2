"""A model file is replaced as a whole, in its place."""

import os

import numpy as np
import pytest
from quick_fits import parameters

import ssnmf_fast as sf


class TestFiles:
    """A model file is replaced as a whole, in its place."""

    @pytest.fixture
    def model(self, data):
        return sf.NMF(**parameters()).fit(data[0])

    def test_links_are_followed(self, model, tmp_path):
        real, link = tmp_path / "deep" / "real.npz", tmp_path / "link.npz"
        real.parent.mkdir()
        link.symlink_to(real)
        for _ in range(2):  # first the link leads nowhere
            sf.save(model, link)
            assert link.is_symlink()
            assert isinstance(sf.load(real), sf.NMF)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["deep", "link.npz"]

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
    def test_permissions_stay(self, mode, model, path):
        path.touch()
        path.chmod(mode)
        sf.save(model, path)
        assert path.stat().st_mode & 0o777 == mode

    def test_new_files_follow_the_umask(self, model, path):
        earlier = os.umask(0o027)
        try:
            sf.save(model, path)
        finally:
            os.umask(earlier)
        assert path.stat().st_mode & 0o777 == 0o640

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
    def test_an_interrupted_write_leaves_the_old_file(self, error, model, path, monkeypatch):
        sf.save(model, path)
        before = path.read_bytes()

        def half(file, **arrays):
            file.write(b"PK half")
            raise error

        monkeypatch.setattr(np, "savez_compressed", half)
        with pytest.raises(type(error)):
            sf.save(model, path)
        assert path.read_bytes() == before
        assert [p.name for p in path.parent.iterdir()] == [path.name]

    def test_errors_name_the_file_that_was_given(self, model, tmp_path):
        missing = tmp_path / "no folder" / "model.npz"
        with pytest.raises(FileNotFoundError) as caught:
            sf.save(model, missing)
        assert caught.value.filename == str(missing)
        with pytest.raises(IsADirectoryError):
            sf.save(model, tmp_path)
