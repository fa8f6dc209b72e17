"""Finding models: names, folders without what they need, pointers instead of weights, code that comes along."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from sentcompress.errors import InputError
from sentcompress.models import sources
from sentcompress.models.sources import FetchError, resolve, weight_files


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_model, tmp_path / "model")


def test_a_folder_is_known_by_its_contents(folder: Path, tmp_path: Path) -> None:
    source = resolve(str(folder))
    assert source.path == folder
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert resolve(str(copy)).digest == source.digest
    (copy / "README.md").write_text("words")
    assert resolve(str(copy)).digest == source.digest
    config = json.loads((copy / "1_Pooling" / "config.json").read_text())
    (copy / "1_Pooling" / "config.json").write_text(json.dumps(config | {"pooling_mode": "cls"}))
    assert resolve(str(copy)).digest != source.digest


def test_safetensors_are_preferred(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"x")
    assert [path.name for path in weight_files(folder)] == ["model.safetensors"]


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="has no weights") as caught:
        resolve(str(folder))
    assert caught.value.hint
    assert "model.safetensors" in caught.value.hint
    assert "GGUF" in caught.value.hint


def test_an_adapter_without_a_model_is_named_as_such(folder: Path) -> None:
    """A folder of PEFT has neither a configuration nor weights of a model; the configuration was said to be missing."""
    for name in ("model.safetensors", "config.json"):
        (folder / name).unlink()
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "owner/base"}')
    (folder / "adapter_model.safetensors").write_bytes(b"x")
    with pytest.raises(InputError, match="holds an adapter") as caught:
        resolve(str(folder))
    assert "merge_and_unload" in str(caught.value.hint)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_pointer_of_git_lfs_is_recognised(name: str, folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:53aa51\nsize 90868376\n"
    (folder / name).write_text(pointer)
    with pytest.raises(InputError, match="git-lfs pointer") as caught:
        resolve(str(folder))
    assert caught.value.hint == "fetch it: git lfs pull"


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json"):
        resolve(str(tmp_path))


def test_a_file_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="is a file"):
        resolve(str(folder / "config.json"))


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "a/b/c", "~/models/x", "with space/x"])
def test_a_path_that_leads_nowhere_is_never_asked_of_the_hub(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_download", lambda *_: pytest.fail("asked the hub"))
    with pytest.raises(InputError, match="no model folder"):
        resolve(name)


@pytest.mark.parametrize("text", ["not json", "[1, 2]", '"a string"', ""])
def test_a_configuration_that_is_none_is_refused(text: str, folder: Path) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(InputError, match=r"config\.json is not"):
        resolve(str(folder))


def test_a_configuration_in_another_encoding_is_refused(folder: Path) -> None:
    (folder / "config.json").write_bytes(b"\xff\xfe{\x00}\x00")
    with pytest.raises(InputError, match=r"config\.json is not"):
        resolve(str(folder))


@pytest.mark.parametrize("text", ["{}", "[]", "3", '["x"]'])
def test_a_module_list_that_is_none_is_refused(text: str, folder: Path) -> None:
    (folder / "modules.json").write_text(text)
    with pytest.raises(InputError, match="not a list of modules"):
        resolve(str(folder))


def test_code_that_comes_with_a_model_is_refused_unless_trusted(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "evil.Model"}}))
    with pytest.raises(InputError, match="run Python code") as caught:
        resolve(str(folder))
    assert "`trust_remote_code`" in str(caught.value.hint)
    assert resolve(str(folder), trust_remote_code=True).path == folder


def test_code_that_comes_with_a_tokenizer_is_refused(folder: Path) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": {"AutoTokenizer": ["evil.T", None]}}))
    with pytest.raises(InputError, match="run Python code"):
        resolve(str(folder))


def test_an_embedded_teacher_with_other_weights_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SimpleNamespace(submodule_search_locations=[str(folder.parent)])
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda _: spec)
    with pytest.raises(InputError, match="are not those of sentence-transformers/all-MiniLM-L6-v2") as caught:
        resolve("embedded")
    assert "--force-reinstall" in str(caught.value.hint)


def test_without_the_embedded_teacher_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="not installed") as caught:
        resolve("embedded")
    assert "[embedded]" in str(caught.value.hint)


def test_a_hub_name_without_a_network_says_what_works_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match="no connection, and it is not in the hub's cache") as caught:
        resolve("somebody/some-model")
    assert "embedded" in str(caught.value.hint)
    with pytest.raises(FetchError, match="cannot be fetched") as caught:
        resolve("sentence-transformers/all-MiniLM-L6-v2")
    assert str(caught.value.hint).startswith("name it embedded: the same model")


def test_a_full_disk_is_no_unreachable_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device", "/cache/blob")

    monkeypatch.setattr("huggingface_hub.snapshot_download", full)
    monkeypatch.setattr(sources, "ask_hub", lambda *_: None)
    with pytest.raises(OSError, match="No space left on device"):
        resolve("somebody/some-model")


@pytest.mark.parametrize("installed", [True, False])
def test_what_is_installed_is_not_to_be_installed_again(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(sources, "is_installed", lambda _: installed)
    for name in ("somebody/some-model", "sentence-transformers/all-MiniLM-L6-v2"):
        with pytest.raises(FetchError) as caught:
            resolve(name)
        assert ("pip install" in str(caught.value.hint)) != installed


def test_a_hub_name_can_be_written_with_its_prefix(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    asked: list[str] = []
    monkeypatch.setattr(sources, "_download", lambda name, _: asked.append(name) or folder)
    (folder.parent / "small").mkdir()
    monkeypatch.chdir(folder.parent)
    assert (resolve("hub:small").label, asked) == ("small", ["small"])
    with pytest.raises(InputError, match="cannot be the name of a hub model"):
        resolve("hub:../x/y")


def test_a_hub_that_cannot_be_reached_says_what_works_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def refuse(*_: object, **__: object) -> str:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    monkeypatch.setattr(sources, "ask_hub", lambda *_: None)
    with pytest.raises(InputError, match="cannot be fetched") as caught:
        resolve("somebody/some-model")
    assert "embedded" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("answer", "hint"), [((503, "Service Unavailable"), "embedded"), ((401, "Unauthorized"), "HF_TOKEN")]
)
def test_an_error_of_the_hub_is_no_missing_connection(
    answer: tuple[int, str], hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub
    from huggingface_hub import errors

    response = SimpleNamespace(status_code=answer[0], reason_phrase=answer[1], headers={}, request=None)

    def refuse(*_: object, **__: object) -> str:
        failed = errors.HfHubHTTPError("refused", response=response)  # type: ignore[arg-type]
        raise errors.LocalEntryNotFoundError("not in the cache") from failed

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    monkeypatch.setattr(sources, "ask_hub", lambda *_: None)
    with pytest.raises(InputError) as caught:
        resolve("somebody/some-model")
    told = f"somebody/some-model cannot be fetched from the hub, which answers {answer[0]} {answer[1]}"
    assert caught.value.message == told
    assert hint in str(caught.value.hint)
