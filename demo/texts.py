"""Real texts of many lengths: the topics of Python's own help, cut into sentences, paragraphs and runs of
paragraphs, and short sentences."""

import random
import re

from pydoc_data import topics

MAX_TOKENS = 512

SHORT = (
    "Good morning.",
    "Where is the station?",
    "The train leaves at nine.",
    "It has been raining all night.",
    "She plays the violin beautifully.",
    "The soup needs a little more salt.",
    "Our flight to Lisbon was delayed.",
    "The cat sleeps on the warm windowsill.",
    "He forgot his umbrella on the bus.",
    "A storm is coming from the west.",
    "The bread came fresh out of the oven.",
    "They won the match in extra time.",
    "My bicycle has a flat tyre.",
    "The museum is closed on Mondays.",
    "Please turn off the lights when you leave.",
    "The doctor told me to drink more water.",
    "Prices went up again last month.",
    "The children built a castle out of sand.",
    "I lost my keys somewhere in the park.",
    "The orchestra tuned their instruments.",
    "Two eggs, a cup of flour and some milk.",
    "The moon is bright tonight.",
    "He scored a goal in the last minute.",
    "The road to the village is blocked by snow.",
    "An apple a day keeps the doctor away.",
    "The library lends books for four weeks.",
    "Her new phone has a better camera.",
    "We planted tomatoes behind the house.",
    "The bank raised its interest rates.",
    "A gentle breeze came in from the sea.",
    "The engine makes a strange noise.",
    "Tickets are sold out for both evenings.",
    "The patient is recovering well after surgery.",
    "They painted the kitchen yellow.",
    "The river flooded the lower fields.",
    "I would like a table for two, please.",
    "The lecture starts in ten minutes.",
    "Wolves have returned to these forests.",
    "The judge postponed the trial.",
    "Nobody knew who had written the letter.",
)

QUERIES = (
    "How do I handle an error without stopping the program?",
    "repeat a block of code while something is true",
    "bad weather",
    "football result",
    "something to cook",
)


def _paragraphs(text):
    """Paragraphs without underlines and grammar layout, white space collapsed."""
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if not re.fullmatch(r"\W*", line)]
        joined = " ".join(" ".join(lines).split())
        if re.search(r"[a-z]{3}", joined):
            yield joined


def _candidates():
    for text in topics.topics.values():
        paragraphs = list(_paragraphs(text))
        for i, paragraph in enumerate(paragraphs):
            yield paragraph
            yield from re.split(r"(?<=[.:]) ", paragraph)
            yield from (" ".join(paragraphs[i : i + n]) for n in (2, 3, 5, 8))


def collect(tokenizer, distinct=200, seed=7):
    """[(text, token ids), ...] in random order: the short sentences, and one text each of up to `distinct`
    different lengths in 3..512,
    the shorter ones closer together."""
    by_length = {}
    for text, encoding in zip(texts := list(dict.fromkeys(_candidates())), tokenizer.encode_batch(texts)):
        by_length.setdefault(len(encoding.ids), (text, encoding.ids))
    lengths = sorted(n for n in by_length if 3 <= n <= MAX_TOKENS)
    spread = [lengths[round((i / (distinct - 1)) ** 1.4 * (len(lengths) - 1))] for i in range(distinct)]
    chosen = [by_length[n] for n in dict.fromkeys(spread)]
    chosen += [(text, tokenizer.encode(text).ids) for text in SHORT]
    random.Random(seed).shuffle(chosen)
    return chosen
