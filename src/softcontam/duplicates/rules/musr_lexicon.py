"""The words that MuSR's rules know beside the names of GSM8K's: more names, titles, and other wordings of a question.

The names were listed from general knowledge and checked against the capitalized words of the stories at hand (250
murder mysteries, 20 object placements, 5 team allocations).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from softcontam.duplicates.rules import gsm8k_lexicon

EITHER = gsm8k_lexicon.EITHER | frozenset("Addison Aubrey Harper Mackenzie Peyton Taylor Skylar Jess Sidney".split())
"""Names of either gender."""

FEMALE = (
    gsm8k_lexicon.FEMALE
    | frozenset(
        """
        Autumn Bria Camille Danielle Delilah Freya Giselle Imogen Isolde Kaylee Keira Kinsley Leona Letti Malaysia
        Marian Marianne Melody Mya Nicole Serenity Uma Unity Wilhelmina Xanthe Xenia Xochitl Zara
        """.split()
    )
) - EITHER
"""Women's names."""

MALE = (
    gsm8k_lexicon.MALE
    | frozenset(
        """
        Cecil Ervin Everett Freddy Garry Glenn Irving Jimmy Kent Lowell Norris Orville Roderick Roscoe Rufus Santiago
        Sergio Stephen Stewart Terrance Van Wilfred Willard Woodrow
        """.split()
    )
) - EITHER
"""Men's names."""

SURNAMES = gsm8k_lexicon.SURNAMES | frozenset("Barbosa Diaz Harrison Kurten Norman Phillips Thornberg".split())
"""Family names; they count as such after a first name."""

TITLES = (
    *gsm8k_lexicon.TITLES,
    *"Captain Chief Deputy Detective Doctor Father Inspector Mister Nurse Officer Rabbi Sergeant Sheriff".split(),
)
"""Words that a name follows."""

NEW_NAMES: Mapping[str, list[str]] = {
    "female": gsm8k_lexicon.NEW_NAMES["female"],
    "male": gsm8k_lexicon.NEW_NAMES["male"],
    "either": """
        Ainsley Arden Ashton Blair Brogan Carey Corey Darcy Devon Drew Ellery Emerson Finley Hadley Jocelin Kendall
        Kerry Kirby Lennox Lindley Marlowe Merritt Quincy Reagan Remy Rowan Shae Sloan Tatum Teagan Ellis Reis
        """.split(),
    "surname": [
        *gsm8k_lexicon.NEW_NAMES["surname"],
        *"Ashcroft Barlow Calloway Drummond Hargrove Kirkland Lockwood Merrick Radcliffe Satterfield Trevelyan".split(),
    ],
}
"""What names are replaced by. Those that end in s stand for such names only: their possessive is written alike."""

QUESTIONS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(r"Who is the most likely murderer\?"),
        (
            "Read the story below and decide which of the people listed at its end probably committed the murder.",
            "Below is an account of an investigation. At the end, name the listed suspect who is the likeliest killer.",
            "Which of the suspects named after this story does the evidence point to as the killer?",
        ),
    ),
    (
        re.compile(r"Which location is the most likely place (.+) would look to find the (.+) given the story\?"),
        (
            r"Read the story below, then say which of the places listed after it \1 would most probably search first "
            r"for the \2.",
            r"Below is a story. Judging by what \1 knows in it, at which of the places listed at its end is \1 the "
            r"likeliest to go looking for the \2?",
        ),
    ),
    (
        re.compile(
            r"Given the story, how would you uniquely allocate each person to make sure both tasks are accomplished "
            r"efficiently\?"
        ),
        (
            "Read the story below and choose from the listed assignments the one that gets both jobs done best.",
            "Below is a story about people and two jobs. Which listed way to divide them up gets the most out of them?",
        ),
    ),
)
"""MuSR's questions, and requests that may go in front of the story in their place."""
