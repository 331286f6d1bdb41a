"""The names and nouns that GSM8K's rules know: which stand for which, and where a word is left alone.

Names that are replaced were listed from general knowledge and checked against the capitalized words of the 1,319 test
questions. What replaces them, and the families of nouns, were chosen so that a swapped problem stays sensible: within
a family things are bought, eaten, counted or kept in the same way and are about as large.
"""

from __future__ import annotations

from dataclasses import dataclass

FEMALE = frozenset(
    """
    Abby Abigail Ada Adrianne Adelaide Agatha Agnes Aggie Aileen Aisha Alana Alani Alba Aleena Aleksandra Alexandra
    Alice Alicia Alina Alisa Alison Aliya Allison Alyana Alyssa Amalia Amanda Amara Amber Amelia Amina Amora Amy Ana
    Anastasia Andrea Angela Angelica Anika Anita Ann Anna Annabelle Anne Annie Annika Antonella Antonia April Arelia
    Ariadne Ariana Arianna Artemis Ashley Ashlyn Astrid Audrey Aurelia Aurora Ava Barbara Beatrice Beatriz Becca Becky
    Belen Bella Bernadette Bernice Bertha Beth Bethany Betsy Betty Beverly Bianca Bonnie Brenda Brianna Brianne
    Bridget Brinley Britany Brittany Brooke Camila Camilla Candice Carla Carly Carmen Carol Carolina Caroline Carolyn
    Carrie Cassandra Catherine Cayley Cecelia Cecilia Celeste Celia Celinda Celine Cera Charlotte Charmaine Chenny
    Cherrie Cheryl Chloe Christina Christine Cindy Claire Clara Claudia Colleen Concetta Connie Cora Courtney Crista
    Cynthia Daisy Dana Daniela Daphne Darla Dasha Deanna Debbie Deborah Debra Deepa Delia Denise Desiree Diana Diane
    Dijana Dina Dolly Donna Dora Doris Dorothy Edith Eileen Elaina Elaine Eleanor Elena Elisa Elise Eliza Elizabeth
    Ella Ellen Ellie Elly Elsa Elsie Elvira Emily Emma Erica Erika Erin Esmeralda Esther Ethel Eva Eve Evelyn Faith
    Fatima Felicia Fern Fiona Flora Florence Frances Francesca Freda Frida Gabriela Gabriella Gabrielle Genevieve
    Georgia Gia Gianna Gina Ginger Gissela Giselle Gladys Gloria Grace Greta Gretchen Guadalupe Gwen Hailey Haley
    Hallie Hanna Hannah Harriet Hazel Heather Heidi Helen Helena Helene Helga Holly Hope Imma Ingrid Irene Iris Isabel
    Isabella Isabelle Isla Ivy Izzy Jacqueline Jada Jade Jana Jane Janelle Janet Janeth Janey Janice Jasmine Jean Jen
    Jenna Jennie Jennifer Jenny Jessa Jessica Jewel Jewell Jill Jillian Jo Joan Joanna Joanne Jocelyn Joelle Johanna
    Jolene Josephine Josie Joy Joyce Juana Judith Judy Julia Juliana Julianna Julie Juliet Julieta June Kalinda Kamala
    Karen Kassidy Katarina Kate Katelyn Katerina Katherine Kathleen Kathryn Kathy Katie Katina Katrina Katy Kayla
    Kelsey Kelsie Kendra Kiara Kimberley Kimberly Kira Kora Krissa Kristen Kristin Kristina Kylie Lainey Lana Lara
    Laura Lauren Leah Leila Lena Leslie Leticia Lila Lillian Lily Linda Lindsay Lindsey Lisa Liz Liza Lizzie Lola Lori
    Lorie Lorraine Louisa Louise Lucia Lucille Lucy Luna Lydia Lylah Lyla Lynn Mabel Maddie Maddison Maddy Madeline
    Madelyn Madison Maggie Mandy Mara Marcia Marcy Margaret Margareth Margot Maria Mariah Marian Mariana Marie Mariel
    Marilyn Marina Marisa Marissa Marjorie Marlene Marta Martha Mary Maryam Matilda Maude Maya Mazie Meg Megan Mei
    Melanie Melinda Melissa Mercy Meredith Merissa Mia Michelle Mila Mildred Millie Milly Mina Minnie Miranda Miriam
    Moira Molly Mona Monic Monica Morisette Mulan Myra Myrna Nadia Nadine Nancy Naomi Natalia Natalie Natasha Nell
    Nellie Nina Nissa Nora Noelle Norma Octavia Odette Olga Olive Olivia Ophelia Paige Paisley Pam Pamela Pandora
    Patricia Patty Paula Pauline Pearl Peggy Penelope Penny Petra Phoebe Phyllis Polly Poppy Portia Priscilla Rachel
    Rafaela Ramona Rani Raquel Rayna Rebecca Regina Renee Rhonda Rissa Rita Riza Roberta Robyn Rosa Rosalie Rosalind
    Rose Rosemary Rosie Rowena Roxanne Rozanne Ruby Ruth Saanvi Sabrina Sadie Sally Salma Samantha Sandra Sara Sarah
    Sarai Savannah Scarlett Selena Serena Shaelyn Shania Shannon Sharon Shauna Shawna Shawnda Sheila Shelley Shelly
    Sherry Shiela Shirley Shondra Sierra Silvia Simone Siobhan Sloane Sofia Sofie Soledad Sonia Sonya Sophia Sophie
    Stacy Stacey Stella Stephanie Sue Susan Susanna Susie Suzanne Suzie Suzy Suzzane Svetlana Sylvia Sylvie Tabitha
    Tamara Tammy Tania Tanya Tara Tasha Tatiana Tatyana Teresa Teri Terri Tess Tessa Thea Thelma Theresa Tiffany Tina
    Toula Tracy Trina Trinity Trixie Trudy Ursula Valerie Vanessa Vera Verna Veronica Vicki Vicky Victoria Viola
    Violet Violetta Virginia Vivian Wanda Wendi Wendy Wilma Winnie Yolanda Yvette Yvonne Zelda Zoe Zoey
    """.split()
)
"""Women's and girls' names."""

MALE = frozenset(
    """
    Aaron Abdul Abe Abel Abraham Adam Adelwolfe Adrien Ahito Ahmed Aidan Aiden Akbar Alan Albert Alberto Alec
    Alejandro Alessandro Alexander Alfie Alfred Alfredo Ali Allan Allen Alvin Amir Anakin Andre Andrew Andy Angelo
    Anthony Antoine Anton Antonio Archie Arge Arnold Arthur Artie Arturo Alain Asher Axel Baldur Barry Bart Beck
    Ben Benedict Benjamin Benji Bennet Bennett Benny Bernard Bernardo Bernie Bert Bill Billy Bob Bobby Bodhi Boris
    Brad Bradley Brady Brandon Braylen Brendan Brent Brett Brian Bruce Bruno Bryan Bryce Bud Buford Byron Cal Caleb
    Calvin Camden Carl Carlos Carlton Carson Carver Cedric Cesar Chad Charles Chengli Chester Chikote Christian
    Christopher Clarence Claude Clayton Cliff Clifford Clint Clyde Cody Colby Cole Colin Connor Conor Conrad Corey
    Craig Cristiano Curtis Cyrus Damien Dan Daniel Danny Darius Darrell Darren Darryl Dave David Davis Dax DeSean Dean
    Deandre Dennis Derek Derrick Desmond Dexter Diego Dillon Dirk Dominic Dominick Don Donald Donny Donovan Doug
    Douglas Duane Duncan Dustin Dwayne Dwight Dylan Earl Ed Eddie Eddy Edgar Edmund Eduardo Edward Edwin Eli Elias
    Elijah Elliott Ellis Elmer Elvis Emil Emilio Emmanuel Enrique Eric Erik Ernest Ernesto Errol Ethan Eugene Evan
    Ezra Fabian Felipe Felix Ferdinand Fernando Finn Floyd Francis Francisco Franco Frank Frankie Franklin Franky Fred
    Freddie Freddy Frederick Gabe Gabriel Garrett Gary Gavin Geoffrey George Gerald Gilbert Gomer Gordon Gordy Grant
    Grayson Greg Gregory Griffin Gunter Gunther Gus Gustavo Hank Hans Harald Harold Harry Harvey Hector Henry Herb
    Herbert Herman Hezekiah Holden Homer Horace Howard Howie Hubert Hugh Hugo Ian Ibrahim Igor Ignacio Isaac Isaias
    Isaiah Ismael Ivan Jack Jackson Jacob Jacques Jaime Jairus Jake Jamaal Jamaar Jamal Jame James Jameson Jared
    Jarrett Jason Jasper Javier Jayden Jed Jeff Jefferson Jeffery Jeffrey Jerald Jeremiah Jeremy Jermaine Jerome Jerry
    Jesse Jesus Jim Jimmy Joaquin Joe Joel Joey Johan Johannes John Johnny Jon Jonah Jonas Jonathan Jorge Jose Joseph
    Josh Joshua Josue Juan Judah Julian Julio Julius Juris Justin Kareem Karl Keegan Keenan Keith Kelian Ken Kenneth
    Kenny Kevin Kieran Kirk Klaus Kurt Kyle Kylar Lamar Lance Larry Lars Laurence Lawrence Leo Leon Leonard Leonardo
    Leroy Levi Lewis Liam Lincoln Linus Lionel Lloyd Logan Lorenzo Louis Luca Lucas Luis Lukas Luke Luther Mack
    Malcolm Malik Manny Manolo Manuel Marc Marcel Marcell Marcellus Marco Marcos Marcus Mario Mark Marlon Marshall
    Martin Marty Marvin Mason Mateo Matt Matteo Matthew Maurice Maverick Max Maxim Maximilian Maxwell Melvin Michael
    Micheal Miguel Mike Miles Milo Milton Mitch Mitchel Mitchell Mohamed Mohammed Morris Moses Muhammad Murray Nate
    Nathan Nathaniel Ned Neil Nelson Newton Nicholas Nick Nico Nicolas Nigel Nik Noah Noel Nolan Norman Oliver Omar
    Orlando Oscar Oswald Otis Otto Owen Pablo Pancho Parker Patrick Paul Pedro Percy Perry Pete Peter Phil Philip
    Phillip Phineas Pierre Pierson Preston Rafael Rajiv Ralph Ramiro Ramon Randall Raphael Ravi Ray Raymond Reggie
    Reginald Rex Ricardo Richard Richie Rick Ricky Riley Rob Robbie Robert Roberto Rodney Rodrigo Roger Roland Roman
    Romeo Ron Ronald Ross Roy Royce Ruben Rudolph Rudy Rufus Rupert Russ Russell Ryan Rylan Sahir Sal Salvador Samuel
    Samwell Santiago Saul Scott Sean Sebastian Seth Seymour Shaun Shawn Sherman Sid Silas Simon Solomon Spencer Stan
    Stanley Stefan Stetson Stephen Steve Steven Stewart Stuart Sylas Tariq Ted Terrance Terrence Thaddeus Theo
    Theodore Thomas Tim Timmy Timothy Tobias Toby Todd Tom Tomas Tommy Topher Travis Trent Trevor Trey Tristan Troy
    Tyler Tyrion Tyrone Tyson Uriah Vernon Victor Vince Vincent Virgil Vladimir Wade Wallace Walt Walter Warren Wayne
    Wesley Wilbur Wilfred Will William Willie Wilson Winston Wyatt Xavier Yuri Zac Zach Zachary Zack Zaid Zane Zeke
    """.split()
)
"""Men's and boys' names."""

EITHER = frozenset(
    """
    Adrian Alex Ariel Avery Azibo Bahati Bailey Billie Blake Cameron Casey Charlie Chris Dale Drew Elliot Emerson
    Farbo Finley Gene Hayden Indras Jackie Jaden Jamie Jan Jay Jess Jessie Jojo Jordan Josey Kael Karan Kelly Kendall
    Kim Kimo Kris Kory Lani Laurel Lee Lou Luri Mel Micah Mico Mishka Misha Morgan Nani Nikita Nicky Pat Payton Peyton
    Quincy Quinn Randy Reese Ren Rene Robin Ronnie Rory Rowan Sam Sandy Sasha Saskay Shelby Shiloh Sidney Sitti Skylar
    Skyler Stevie Sydney Tate Taylor Terry Toni Tony Tracey Val Yu
    """.split()
)
"""Names of either, and names whose gender is not known here."""

WORDLIKE = frozenset(
    """
    Amber April Austin Bailey Beck Bill Bob Brooke Bud Buck Carol Carver Chad Chase Christian Cliff Cole Daisy
    Dale Dan Dean Dolly Don Drew Ed Earl Eve Faith Fern Finn Florence Frank Gene Georgia Ginger Grace Grant Hazel
    Holly Homer Hope Iris Ivy Jack Jade Jan Jasmine Jay Jean Jewel Jimmy Job Josh Joy June Kelly Kim Kit Lance Laurel
    Lily Lincoln Lou Luna Madison Marina Mark Mason Max Maverick Mercy Mike Miles Mina Miranda Nick Olive Otis Paisley
    Parker Pat Patty Pearl Penny Peter Phoenix Poppy Ray Ren Rex Rob Robin Roman Rose Rosemary Ruby Sage Sal Sally
    Sandy Savannah Scarlett Shelby Sierra Skylar Solomon Stella Sue Sunny Sydney Tate Taylor Trey Trinity Troy Val
    Viola Violet Virginia Wade Will Jackson Jordan Newton Orlando Camden Carson Francisco Diego Victoria Charlotte
    Salvador Santiago Jersey Nelson Griffin Spencer Marshall Perry Mack Sherman
    """.split()
)
"""Names that are words, months or places too: they need a sign that a person is meant."""

NEW_NAMES = {
    "female": """
        Adelheid Alma Annelise Bettina Blanche Calista Carlotta Clementine Constance Cordelia Delphine Dorothea Effie
        Eloise Ernestine Estelle Eugenie Felicity Fernanda Frieda Georgina Gertrude Gwendolyn Hattie Henrietta Hilda
        Ilse Imogen Inez Isadora Jeanette Johanne Juliette Karina Katya Lavinia Leonora Lettie Lucinda Magdalena
        Marguerite Maribel Minerva Nadja Nerissa Ottilie Paloma Perpetua Philippa Quintina Rosalba Rosanna Seraphina
        Sunniva Theodora Tomasina Ulrike Valentina Vivienne Wilhelmina Winifred Xenia Yasmin Yesenia Zinnia
        Agnes Doris Gladys Lois Phyllis Frances
    """.split(),
    "male": """
        Adalbert Alistair Ambrose Anselm Augustin Barnaby Bartholomew Benoit Boyd Casimir Clement Corbin Cornell
        Damian Dimitri Dmitry Dorian Edmond Emeric Everett Ewan Fabrizio Fergus Florian Franz Gareth Gideon Gregor
        Guillermo Hamish Heinrich Humphrey Ignatz Isidore Ivor Jarvis Jerzy Joachim Kaspar Kilian Konrad Lambert
        Leander Leopold Lorcan Magnus Matthias Montgomery Nikolai Norbert Octavio Osvaldo Percival Quentin Reinhard
        Rolando Rodolfo Sergio Siegfried Tadeusz Terence Thorsten Ulrich Valentin Vaughn Waldemar Wendell Xander
        Yannick Yusuf Zoltan Nicholas Silas Linus Cyrus Amos Angus Augustus
    """.split(),
    "either": """
        Ainsley Arden Ashton Briar Brighton Cadence Carey Corin Dakota Darcy Devon Ellery Emery Frankie Gale Harley
        Harlow Indigo Jocelin Joss Justice Keaton Kerry Landry Lennon Lindley Marlowe Merritt Monroe Nevada Oakley
        Ocean Palmer Perrin Remy Rennie Ripley Sawyer Shae Sutton Teagan Tatum Umber Vale Wren Yael Zephyr Ellis Chris
    """.split(),
    "surname": """
        Abernathy Bancroft Castellano Delacroix Eklund Fairbanks Galbraith Hartwell Ingram Jankowski Kowalski Lindqvist
        Montague Nakamura Ostrander Pemberton Quigley Rasmussen Stanhope Thackeray Underhill Vandermeer Whitaker Yardley
        Zimmerman Mathis Willis Travers
    """.split(),
}
"""What names are replaced by. Those that end in s stand for such names only: their possessive is written alike."""

FIRST_NAMES = FEMALE | MALE | EITHER
"""All names that are replaced."""

MONTHS = frozenset(("April", "June"))
"""Names that are months; they are persons only where nothing else is said of time. May and August never are."""

TITLES = ("Mr", "Mrs", "Ms", "Miss", "Dr", "Professor", "Coach", "Principal", "Farmer", "Grandma", "Grandpa")
"""Words that a surname follows."""

SURNAMES = frozenset(
    "Adams Brown Butler Collins Cruz Faraday Ford Harrington Hoover Johns Johnson Jones Locsin Roberts Robinson Robles "
    "Rogers Roper Ruiz Smith Tan Thompson Watson Wertz White Williams Wilson Young".split()
)
"""Surnames that may follow a first name."""


@dataclass(frozen=True)
class Family:
    """Nouns, singular and plural, that can stand for each other, unless the problem holds one of the ``guards``."""

    nouns: tuple[tuple[str, str], ...]
    guards: frozenset[str]


def _family(nouns: str, guards: str = "") -> Family:
    """A family from words; a plural is given after ``/`` where it is not the singular with an s."""
    pairs = [noun.partition("/") for noun in nouns.split()]
    return Family(tuple((one, many or f"{one}s") for one, _, many in pairs), frozenset(guards.split()))


FAMILIES = (
    _family("apple pear peach/peaches plum nectarine apricot orange", "iphone gum core cores caramel carrots cider"),
    _family("banana mango/mangoes papaya guava kiwi", "bunch bunches peel peels monkey monkeys"),
    _family("lemon lime grapefruit", "lemonade juice juices limeade zest"),
    _family("strawberry/strawberries raspberry/raspberries blackberry/blackberries blueberry/blueberries"),
    _family("cherry/cherries grape", "tree trees pie pies orchard tomato tomatoes wine raisins bunch bunches vine"),
    _family("watermelon cantaloupe pumpkin", "halloween carve carved vine vines seed seeds pie pies patch"),
    _family(
        "carrot turnip parsnip radish/radishes beet potato/potatoes onion",
        "sweet vine vines fries mashed chip chips rings sack juice soup rabbit rabbits bunny",
    ),
    _family("cucumber zucchini eggplant artichoke", "pickle pickles vine vines"),
    _family("almond walnut cashew hazelnut pecan", "tree trees milk"),
    _family(
        "dog cat",
        "hot bark barks puppy puppies kitten kittens leash kennel breed breeds bulldogs rottweiler dachshund "
        "mastiff pomeranian pomeranians shepherd shepherds litter walk walks walking walker walkers paw paws "
        "tongue treats mice fish show mouse bone bones groom groomed grooming affenpinscher lady ladies",
    ),
    _family("puppy/puppies kitten", "dog dogs cat cats bark breed breeds spots pomeranian pomeranians mastiff"),
    _family("hamster gerbil chinchilla rat", "lab"),
    _family("parakeet canary/canaries budgie cockatiel", ""),
    _family(
        "chicken duck goose/geese quail",
        "sausage sausages bacon nugget nuggets wing wings breast breasts thigh thighs sandwich sandwiches meat "
        "fried pond swim swims coop hen hens rooster roosters broilers thanksgiving soup drumstick drumsticks "
        "salad restaurant dinner meal meals lunch cooked rubber duckling ducklings chick chicks roast grilled "
        "strips pie pies ordered order kg feather feathers",
    ),
    _family("cow goat buffalo/buffaloes", "calf calves beef kid kids horn horns steak sheep barn chocolate"),
    _family("horse donkey mule", "race races racing foal foals mustangs carousel stallion power carriage sea"),
    _family("pig llama alpaca", "pork bacon mud piglet piglets guinea bank shear wool sty"),
    _family("lion tiger leopard jaguar", "stripe stripes mane mph speed sea team dandelion"),
    _family("elephant rhino hippo", "trunk tusk tusks tall memory peanuts"),
    _family("monkey lemur baboon", "bars wrench"),
    _family("zebra antelope gazelle", "stripe stripes horn horns"),
    _family("crocodile alligator"),
    _family("wolf/wolves coyote jackal", "pack moon"),
    _family("butterfly/butterflies moth dragonfly/dragonflies", "caterpillar caterpillars"),
    _family("frog toad newt", "lily tadpole tadpoles"),
    _family("owl hawk falcon", "night"),
    _family("crow magpie sparrow starling"),
    _family("ant termite", "anthill"),
    _family("spider scorpion tarantula", "web webs"),
    _family("marble bead", "string necklace necklaces bracelet bracelets statue statues floor jewelry earring"),
    _family("doll puppet", "barbie hair"),
    _family("kite frisbee", "string tail"),
    _family("balloon pinwheel", "pop popped pops burst helium inflate inflated air float floated water blow blew"),
    _family("sticker stamp bookmark", "mail letter letters envelope envelopes book books page pages"),
    _family("seashell pebble", "shell shells"),
    _family(
        "crayon marker pencil pen highlighter",
        "sharpen sharpened ink lead pig pigs broken mile pal pals penpal penpals",
    ),
    _family("eraser ruler stapler sharpener", "inch inches centimeter centimeters length"),
    _family("notebook folder binder notepad", "page pages laptop laptops sheet sheets paper"),
    _family(
        "book magazine",
        "dictionary cookbook encyclopedia chapter chapters author authors novel novels series bookshelf bookcase "
        "issue issues text check note coloring comic publish publisher published words trilogy textbook textbooks "
        "appointment article articles subscription writes writing write shelf shelves",
    ),
    _family("poster banner", ""),
    _family("backpack briefcase satchel"),
    _family("plate bowl", "mixing soup bowling license home cereal ice"),
    _family("spoon fork", "teaspoon road stir measuring"),
    _family("chair stool", "leg legs arm arms wheel musical rocking"),
    _family("table desk", "leg legs tennis multiplication time tablespoon pool picnic"),
    _family("pillow cushion"),
    _family("blanket quilt", "bath beach square squares"),
    _family("bracelet necklace brooch/brooches", "bead beads stone stones"),
    _family("ruby/rubies emerald sapphire", "red green blue"),
    _family(
        "rose tulip daisy/daisies lily/lilies carnation sunflower petunia daffodil orchid marigold iris/irises "
        "lilac geranium peony/peonies",
        "thorn thorns petal petals eyes pad pads price temperature",
    ),
    _family("maple elm birch/birches willow", "syrup"),
    _family(
        "cookie brownie muffin cupcake scone doughnut bagel croissant",
        "donut donuts scout scouts jar frosting icing frosted oreo cream hole holes loaf loaves troop flour dough "
        "monster",
    ),
    _family(
        "cake pie cheesecake",
        "candle candles wedding layer layers tier tiers frosting icing crust crusts shepherd chicken meat pot "
        "chart mix tin pan pans cupcake cream",
    ),
    _family(
        "sandwich/sandwiches burger burrito taco hotdog",
        "hamburger hamburgers ham peanut bread loaf loaves bun buns tortilla patty patties cheese jelly cream ice "
        "meat turkey chicken slices slice hot vegetarian grill egg eggs",
    ),
    _family(
        "pizza quiche", "topping toppings pepperoni delivery deliveries deliver pan crust hut parlor dough diameter"
    ),
    _family("pancake waffle crepe", "cone cones iron paper"),
    _family("lollipop gumdrop jawbreaker gumball", "lick licks machine stick sticks color colors"),
    _family("cracker pretzel", "fire cheese stick"),
    _family("milkshake smoothie", "milk ice fruit"),
    _family(
        "shirt sweater hoodie jacket blouse",
        "sleeve sleeves dress suit suits button buttons hanger hangers tee iron ironing tie ties undershirt knit "
        "wool tailor fabric jersey cotton",
    ),
    _family("hat cap scarf/scarves beanie", "bottle bottles rabbit head heads hard magician bucket brim cowboy"),
    _family("sock glove mitten", "foot feet hole holes boxing hand hands"),
    _family("boot sandal sneaker slipper", "lace laces heel heels snow rain foot feet cowboy camp rainy winter"),
    _family(
        "car truck van",
        "wheel wheels tire tires door doors race races racing train trains fire dump pickup tow ice semi moving "
        "delivery roller cable bumper minivan minivans carpool speed speeds mph ton tons sedan suv box boxes "
        "driver vehicle load loads food toy rental model",
    ),
    _family("bike scooter", "wheel wheels tire tires pedal pedals mountain motor bicycle bicycles gear chain exercise"),
    _family("boat canoe raft kayak", "engine sail sails sailing ship ships motor oar oars speed gravy fish fishing"),
    _family("laptop tablet", "pill pills keyboard medicine dose doses"),
    _family("guitar violin cello banjo", "string strings electric acoustic"),
    _family("flute clarinet trumpet trombone", "champagne"),
)
"""Nouns by family."""

NOUN_GUARDS = {
    "apple": frozenset("green red".split()),
    "orange": frozenset("red blue green yellow purple pink color colors colored colour black white".split()),
    "book": frozenset("trip flight hotel".split()),
    "peach": frozenset("color colors pink".split()),
    "rose": frozenset("gold rises rise".split()),
    "lime": frozenset("color colors green".split()),
    "cap": frozenset("capped".split()),
}
"""Words that leave one noun alone."""

PLURAL_ONLY = frozenset("rose lily iris daisy duck book rat plum orange cap goose plate table chicken".split())
"""Nouns that are other words too: they are replaced where their plural stands in the problem."""
