"""What the rules for ZebraLogic write: other words for its clues and lists, and categories that can replace its own.

None of these words is the benchmark's: :data:`REWORDED` speaks of its own values in other phrases, :data:`NEW` holds
values that it does not have. :mod:`softcontam.duplicates.rules.zebralogic_reader` reads them back and shares no table
with this module, so that a clue written with the wrong meaning is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Words:
    """How one category is spoken of where its text is reworded.

    ``titles`` head the list of its values. ``phrases`` stand for the person who has the value in place of ``{}``, as
    ``shown`` writes it.
    """

    titles: tuple[str, ...]
    phrases: tuple[str, ...]
    shown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Category:
    """A category that the benchmark does not have.

    ``description`` and ``plain`` are in the benchmark's manner, for texts that are not reworded.
    """

    description: str
    plain: str
    values: tuple[str, ...]
    words: Words


REWORDED: Mapping[str, Words] = {
    "Name": Words(("First names, one at each address", "What the residents are called"), ("{}", "the one called {}")),
    "Nationality": Words(
        ("Countries that they come from", "Whose passport says what"),
        ("the resident from {}", "the neighbor with roots in {}"),
        {
            "norwegian": "Norway",
            "german": "Germany",
            "dane": "Denmark",
            "brit": "Britain",
            "swede": "Sweden",
            "chinese": "China",
        },
    ),
    "BookGenre": Words(
        ("What sort of novel or other reading they like", "Reading tastes"),
        ("the {} reader", "the resident whose shelves are full of {}"),
    ),
    "Food": Words(
        ("Dishes served at noon", "Lunch orders"),
        ("the resident having {} at noon", "the neighbor lunching on {}"),
    ),
    "Color": Words(
        ("Colors that they like best", "Preferred colors"),
        ("the resident fond of anything {}", "the neighbor picking {} from every paint box"),
    ),
    "Animal": Words(
        ("Which animal is kept where", "Animals under their care"),
        ("the keeper of the {}", "the neighbor caring for the {}"),
    ),
    "Occupation": Words(
        ("How they earn a living", "Jobs"),
        ("the resident working as {}", "the neighbor employed as {}"),
        {
            "artist": "an artist",
            "engineer": "an engineer",
            "teacher": "a teacher",
            "doctor": "a doctor",
            "lawyer": "a lawyer",
            "nurse": "a nurse",
        },
    ),
    "PhoneModel": Words(
        ("Phones that they carry", "Whose phone is which"),
        ("the resident calling from the {}", "the neighbor whose phone is the {}"),
        {
            "google pixel 6": "Google Pixel 6",
            "iphone 13": "iPhone 13",
            "oneplus 9": "OnePlus 9",
            "samsung galaxy s21": "Samsung Galaxy S21",
            "huawei p50": "Huawei P50",
            "xiaomi mi 11": "Xiaomi Mi 11",
        },
    ),
    "Children": Words(
        ("The one child of each household", "Sons and daughters, one apiece"),
        ("the resident raising {}", "the parent of little {}"),
    ),
    "MusicGenre": Words(
        ("Music that they put on", "Whose stereo plays what"),
        ("the {} listener", "the resident with a stack of {} records"),
    ),
    "Height": Words(
        ("How tall or short they are", "Body heights, no two alike"),
        ("the resident of {} stature", "the neighbor whose size is called {}"),
    ),
    "Mother": Words(
        ("What their own mothers are called", "Mothers of the residents"),
        ("the son or daughter of {}", "the resident who was raised by {}"),
    ),
    "Vacation": Words(
        ("Holidays that they take", "How free weeks are spent"),
        ("the traveler keen on {}", "the resident saving up for {}"),
        {
            "city": "city trips",
            "mountain": "mountain stays",
            "camping": "nights in a tent",
            "beach": "days at the seaside",
            "cruise": "voyages by ship",
            "cultural": "culture tours",
        },
    ),
    "Pet": Words(
        ("Pets of the households", "Who shares a home with which pet"),
        ("the resident whose pet is a {}", "the neighbor with a {} as house pet"),
    ),
    "Birthday": Words(
        ("Months of birth", "When they turn a year older"),
        ("the resident born in {}", "the neighbor celebrating in {}"),
        {
            "jan": "January",
            "feb": "February",
            "mar": "March",
            "april": "April",
            "may": "May",
            "sept": "September",
        },
    ),
    "HouseStyle": Words(
        ("Architecture of the buildings", "In which manner the homes were built"),
        ("the occupant of the {} building", "the resident behind the {} facade"),
        {"victorian": "Victorian", "craftsman": "Craftsman", "mediterranean": "Mediterranean"},
    ),
    "Flower": Words(
        ("Blossoms that they like best", "What they ask for at the florist"),
        ("the admirer of {}", "the neighbor buying {} at the florist"),
    ),
    "Education": Words(
        ("Highest qualifications", "How far schooling went"),
        ("the holder of {}", "the neighbor whose schooling ended with {}"),
        {
            "master": "a master's degree",
            "bachelor": "a bachelor's degree",
            "doctorate": "a doctorate",
            "high school": "a high school diploma",
            "associate": "an associate's degree",
            "trade school": "a trade school certificate",
        },
    ),
    "FavoriteSport": Words(
        ("Sports that they follow", "Whose heart beats for which sport"),
        ("the {} fan", "the neighbor mad about {}"),
    ),
    "Cigar": Words(
        ("Cigars that they light", "Whose cigar is which"),
        ("the resident lighting a {} cigar", "the neighbor with a box of {}"),
        {
            "prince": "Prince",
            "pall mall": "Pall Mall",
            "blends": "Blends",
            "dunhill": "Dunhill",
            "blue master": "Blue Master",
            "yellow monster": "Yellow Monster",
        },
    ),
    "CarModel": Words(
        ("Cars in the driveways", "What they drive"),
        ("the driver of the {}", "the resident parking a {} outside"),
        {
            "tesla model 3": "Tesla Model 3",
            "honda civic": "Honda Civic",
            "toyota camry": "Toyota Camry",
            "ford f150": "Ford F-150",
            "bmw 3 series": "BMW 3 Series",
            "chevrolet silverado": "Chevrolet Silverado",
        },
    ),
    "Hobby": Words(
        ("Pastimes", "What they do after work"),
        ("the resident whose pastime is {}", "the neighbor relaxing through {}"),
    ),
    "HairColor": Words(
        ("Shades of hair", "Whose hair has what shade"),
        ("the resident whose hair is {}", "the {}-haired neighbor"),
    ),
    "Smoothie": Words(
        ("Smoothies that they order", "Whose smoothie is which"),
        ("the resident ordering the {} smoothie", "the neighbor blending a {} smoothie"),
    ),
    "Drink": Words(
        ("Beverages", "What is in their cups and glasses"),
        ("the resident sipping {}", "the neighbor whose cup holds {}"),
    ),
}
"""The benchmark's own categories in other words."""


def _new(
    description: str,
    plain: str,
    values: str,
    titles: tuple[str, str],
    phrases: tuple[str, str],
    shown: Mapping[str, str] | None = None,
) -> Category:
    return Category(description, plain, tuple(values.split(", ")), Words(titles, phrases, shown or {}))


def _capitals(values: str) -> dict[str, str]:
    return {value: value.title() for value in values.split(", ")}


NAMES: Mapping[str, Category] = {
    "FirstName": _new(
        "Each person has a different first name",
        "{}",
        "Dmitri, Ingrid, Kofi, Leila, Mateo, Yuki",
        ("Given names, one at each address", "What their friends call them"),
        ("{}", "the one known as {}"),
    ),
    "Surname": _new(
        "Each person has a different surname",
        "the person whose surname is {}",
        "Abara, Castellano, Fitzgerald, Haddad, Lindqvist, Nakamura",
        ("Family names", "Surnames on the doorbells"),
        ("the bearer of the surname {}", "the neighbor listed under {}"),
    ),
}
"""Categories that replace ``Name``."""

NEW: Mapping[str, Category] = {
    "Instrument": _new(
        "People play different musical instruments",
        "the person who plays the {}",
        "violin, trumpet, harp, accordion, clarinet, drums",
        ("Musical instruments", "Whose instrument is which"),
        ("the musician on the {}", "the resident practicing the {}"),
    ),
    "Spice": _new(
        "Everyone cooks with a different spice",
        "the person who cooks with {}",
        "saffron, cumin, paprika, turmeric, cardamom, nutmeg",
        ("Spices in the kitchens", "What they season with"),
        ("the cook seasoning with {}", "the resident whose spice rack holds {}"),
    ),
    "Gemstone": _new(
        "Each person wears a different gemstone",
        "the person who wears the {}",
        "opal, topaz, garnet, emerald, sapphire, amethyst",
        ("Gems that they own", "Whose ring holds which stone"),
        ("the wearer of the {}", "the resident with the {} ring"),
    ),
    "Tree": _new(
        "A different tree grows in front of each house",
        "the person with the {} tree in front",
        "oak, maple, birch, willow, cedar, chestnut",
        ("Trees at their gates", "Which tree stands at whose door"),
        ("the resident with the {} by the gate", "the neighbor raking {} leaves"),
    ),
    "Dance": _new(
        "Everyone is learning a different dance",
        "the person who is learning the {}",
        "tango, waltz, samba, foxtrot, polka, flamenco",
        ("Dances that they practice", "What they do on the dance floor"),
        ("the {} dancer", "the resident enrolled in the {} class"),
    ),
    "Cheese": _new(
        "People buy different kinds of cheese",
        "the person who buys {}",
        "brie, gouda, feta, cheddar, manchego, gorgonzola",
        ("Cheeses on their boards", "Which cheese is whose"),
        ("the resident with {} on the cheese board", "the neighbor slicing {}"),
    ),
    "BoardGame": _new(
        "Each person plays a different board game",
        "the person who plays {}",
        "chess, checkers, backgammon, dominoes, mahjong, scrabble",
        ("Games on their tables", "Which game is whose"),
        ("the {} player", "the resident setting up a game of {}"),
    ),
    "Planet": _new(
        "Each person has a poster of a different planet",
        "the person with the poster of {}",
        "mercury, venus, mars, jupiter, saturn, neptune",
        ("Planets that they watch", "Whose telescope points at which planet"),
        ("the stargazer watching {}", "the resident whose telescope points at {}"),
        _capitals("mercury, venus, mars, jupiter, saturn, neptune"),
    ),
    "Metal": _new(
        "Everyone collects coins of a different metal",
        "the person who collects {} coins",
        "copper, silver, bronze, nickel, platinum, brass",
        ("Metals that they collect", "What their coins are made of"),
        ("the collector of {} coins", "the resident with coins of {}"),
    ),
    "Fabric": _new(
        "The curtains in each house are of a different fabric",
        "the person who has {} curtains",
        "silk, linen, velvet, denim, corduroy, flannel",
        ("Fabrics at their windows", "What the curtains are made of"),
        ("the resident behind the {} curtains", "the neighbor who sews with {}"),
    ),
    "Language": _new(
        "People study different languages",
        "the person who studies {}",
        "latin, greek, hungarian, japanese, swahili, welsh",
        ("Languages that they learn", "Which language is studied where"),
        ("the student of {}", "the resident with the {} dictionary"),
        _capitals("latin, greek, hungarian, japanese, swahili, welsh"),
    ),
    "Transport": _new(
        "Each person goes to work by a different means of transport",
        "the person who goes to work by {}",
        "tram, ferry, bicycle, moped, bus, taxi",
        ("Means of transport to work", "How they commute"),
        ("the commuter on the {}", "the resident arriving by {}"),
    ),
    "Dessert": _new(
        "Everyone bakes or orders a different dessert",
        "the person who has {} for dessert",
        "tiramisu, sorbet, cheesecake, baklava, pavlova, rice pudding",
        ("Desserts", "What ends their meals"),
        ("the resident finishing a meal with {}", "the neighbor who spoons up {}"),
    ),
    "Subject": _new(
        "People studied different subjects at university",
        "the person who studied {}",
        "chemistry, geography, astronomy, philosophy, economics, botany",
        ("Fields that they took a degree in", "Subjects taken at college"),
        ("the graduate in {}", "the resident whose field is {}"),
    ),
    "Weekday": _new(
        "Each person does the laundry on a different day",
        "the person who does the laundry on {}",
        "monday, tuesday, wednesday, thursday, friday, saturday",
        ("Days for the washing", "When their washing machines run"),
        ("the resident washing clothes on {}", "the neighbor whose laundry day is {}"),
        _capitals("monday, tuesday, wednesday, thursday, friday, saturday"),
    ),
    "Furniture": _new(
        "Everyone has bought a different piece of furniture",
        "the person who bought the {}",
        "sofa, bookcase, armchair, wardrobe, bathtub, hammock",
        ("Furniture that was delivered", "Whose new furniture is which"),
        ("the buyer of the {}", "the resident awaiting delivery of the {}"),
    ),
    "Pasta": _new(
        "People cook different kinds of pasta",
        "the person who cooks {}",
        "penne, lasagna, ravioli, fusilli, gnocchi, linguine",
        ("Pasta in their pots", "Which pasta is cooked where"),
        ("the resident boiling {}", "the neighbor with a pot of {}"),
    ),
    "Insect": _new(
        "Each person draws a different insect",
        "the person who draws the {}",
        "beetle, butterfly, cricket, dragonfly, ladybug, moth",
        ("Insects in their sketchbooks", "Which insect is drawn by whom"),
        ("the sketcher of the {}", "the resident with the {} on paper"),
    ),
    "River": _new(
        "Everyone has traveled along a different river",
        "the person who traveled along the {}",
        "danube, nile, amazon, ganges, mekong, volga",
        ("Rivers that they have seen", "Which river was visited by whom"),
        ("the visitor to the {}", "the resident back from the {}"),
        _capitals("danube, nile, amazon, ganges, mekong, volga"),
    ),
    "Bread": _new(
        "People bake different kinds of bread",
        "the person who bakes {}",
        "rye, sourdough, baguette, ciabatta, pumpernickel, focaccia",
        ("Loaves from their ovens", "Which bread is baked where"),
        ("the baker of {}", "the resident with {} in the oven"),
    ),
    "Constellation": _new(
        "Each person can point out a different constellation",
        "the person who can point out {}",
        "orion, lyra, cygnus, pegasus, cassiopeia, draco",
        ("Constellations that they know", "Whose star chart shows what"),
        ("the resident looking for {} at night", "the neighbor with a chart of {}"),
        _capitals("orion, lyra, cygnus, pegasus, cassiopeia, draco"),
    ),
    "MartialArt": _new(
        "Everyone trains in a different martial art",
        "the person who trains in {}",
        "judo, karate, aikido, taekwondo, kendo, capoeira",
        ("Martial arts", "What they train for self-defense"),
        ("the {} trainee", "the resident with a belt in {}"),
    ),
    "Shape": _new(
        "A different shape is painted on each door",
        "the person with the {} on the door",
        "hexagon, circle, triangle, star, spiral, crescent",
        ("Shapes painted on their gates", "Which shape marks whose entrance"),
        ("the resident marked by the {}", "the neighbor whose entrance bears the {}"),
    ),
    "Herb": _new(
        "People grow different herbs on the windowsill",
        "the person who grows {}",
        "basil, mint, thyme, rosemary, dill, parsley",
        ("Herbs in their pots", "Which herb is grown where"),
        ("the grower of {}", "the resident watering {}"),
    ),
    "Hat": _new(
        "Each person wears a different hat",
        "the person in the {}",
        "beret, fedora, bonnet, turban, bowler, sombrero",
        ("Headgear", "Which hat is whose"),
        ("the resident under the {}", "the neighbor tipping the {}"),
    ),
    "Vegetable": _new(
        "Everyone sells a different vegetable at the market",
        "the person who sells {}",
        "leeks, spinach, pumpkins, radishes, celery, artichokes",
        ("Vegetables on their stalls", "Which vegetable is sold by whom"),
        ("the seller of {}", "the resident with a stall of {}"),
    ),
}
"""Categories that replace any other, with as many values as the largest puzzle has houses."""

OPENINGS = (
    "A street has {count} homes in a row. Seen from the opposite side they carry the numbers 1 (far left) up to {n} "
    "(far right), and one resident lives at every number. Under each heading, every entry belongs to exactly one "
    "resident.",
    "{Count} neighbors live side by side, one to a home. Looking from over the road, number 1 is the leftmost home and "
    "number {n} the rightmost. No two neighbors agree under any of these headings, and all entries are used.",
    "Picture a line of {count} homes, counted upward from 1 at the left end to {n} at the right end as a passer-by on "
    "the far pavement sees them. All have different residents. From every list, each resident gets one entry that "
    "nobody else gets.",
)
"""First lines; ``count`` is the number of houses as a word, ``n`` as a digit."""

HEADINGS = ("What is known:", "Facts:", "Hints to work from:")
"""Lines above the clues."""

CLUES: Mapping[str, tuple[str, ...]] = {
    "in_house": ("Number {n} is home to {a}.", "You will find {a} at number {n}.", "{A} lives at number {n}."),
    "not_in_house": (
        "Number {n} is not home to {a}.",
        "You will not find {a} at number {n}.",
        "{A} lives at some number other than {n}.",
    ),
    "same_house": ("{A} and {b} are one and the same.", "{A} also happens to be {b}.", "Nobody but {a} can be {b}."),
    "left_of": (
        "{A} lives further left than {b}.",
        "{A} has a lower number than {b}.",
        "Coming from the left, you pass {a} before {b}.",
        "{B} lives further right than {a}.",
        "{B} has a higher number than {a}.",
    ),
    "right_of": (
        "{A} lives further right than {b}.",
        "{A} has a higher number than {b}.",
        "Coming from the left, you pass {a} after {b}.",
        "{B} lives further left than {a}.",
        "{B} has a lower number than {a}.",
    ),
    "directly_left_of": (
        "{A} lives one door to the left of {b}.",
        "The number of {a} is one less than that of {b}.",
        "{B} has {a} as immediate neighbor on the left side.",
        "{B} lives one door to the right of {a}.",
    ),
    "directly_right_of": (
        "{A} lives one door to the right of {b}.",
        "The number of {a} is one more than that of {b}.",
        "{B} has {a} as immediate neighbor on the right side.",
        "{B} lives one door to the left of {a}.",
    ),
    "next_to": (
        "{A} lives next door to {b}.",
        "The numbers of {a} and {b} differ by one.",
        "{A} shares a garden fence with {b}.",
    ),
    "between": (
        "Going from {a} to {b}, in whichever direction that is, you walk past {count} other {home}.",
        "The numbers of {a} and {b} differ by {gap}.",
        "{Count} other {home} would have to go to make {a} and {b} adjacent.",
    ),
}
"""Sentences for each form of clue about ``a`` (and ``b``), whose capitals open a sentence.

``n`` is a house number; ``count`` is how many houses lie between, ``home`` the noun that goes with it and ``gap`` the
difference of the two house numbers.
"""
