"""The decoder of the package g2p-en, a loop in NumPy over GRU cells, with its own weights and unchanged code."""

import importlib
import sys
import types

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch", reason="which other tests have imported, too")
flexor = pytest.importorskip("flexor", reason="the engine is not built")

WORDS = ("hello", "activationist", "a", "compilers", "", "naïve")
LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
SIXTY = [(LETTERS * 3)[length : 2 * length + 1] for length in range(20)] * 3

pytestmark = pytest.mark.slow


@pytest.fixture
def reader(monkeypatch):
    """A G2p without what it asks nltk for."""
    anything = types.SimpleNamespace(find=lambda name: name, dict=dict, tokenize=str.split)
    nltk = types.SimpleNamespace(pos_tag=None, data=anything)
    stand_ins = {"nltk": nltk, "nltk.corpus": types.SimpleNamespace(cmudict=anything)}
    stand_ins |= {"nltk.tokenize": types.SimpleNamespace(TweetTokenizer=lambda: anything), "inflect": types.SimpleNamespace(engine=object)}
    for name, module in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, module)
    if importlib.util.find_spec("g2p_en") is None:
        pytest.skip("the package g2p-en is not installed")
    yield importlib.import_module("g2p_en.g2p").G2p()
    for name in [name for name in sys.modules if name.startswith("g2p_en")]:
        del sys.modules[name]


def test_words_are_read_as_plain_python_reads_them_by_one_program(reader):
    jitted = flexor.jit(type(reader).predict)
    before = flexor.stats()
    assert jitted(reader, "hello") == ["HH", "EH1", "L", "OW0"]
    for word in (*WORDS, *SIXTY):
        assert jitted(reader, word) == reader.predict(word)
    stats, after = jitted.stats(), flexor.stats()
    assert not stats["fallbacks"] and not stats["foreign_calls"] and stats["translations"] == 1 and stats["watched"] == 0
    assert after["compilations"] - before["compilations"] == 1 and after["interpreted_ops"] == before["interpreted_ops"]


@pytest.mark.quick
def test_the_encoder_is_one_program_for_every_length(reader):
    jitted = flexor.jit(type(reader).gru)
    for word in WORDS:
        start = np.zeros((1, reader.enc_w_hh.shape[-1]), np.float32)
        given = (reader.encode(word), len(word) + 1, reader.enc_w_ih, reader.enc_w_hh, reader.enc_b_ih, reader.enc_b_hh)
        assert np.allclose(jitted(reader, *given, h0=start), reader.gru(*given, h0=start), atol=1e-5)
    assert not jitted.stats()["fallbacks"]
