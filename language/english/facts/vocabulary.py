"""Words and patterns for trades, nations, languages, diets, products, figures and dates."""

from __future__ import annotations

import re

NUMBER_WORD = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    r"|sixteen|seventeen|eighteen|nineteen|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety)(?:[ -](?:one|two|three|four|five|six|seven|eight|nine))?|a hundred)"
)
MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
)
WEEKDAY = r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"
DAY = (
    rf"(?:\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}\b(?:,? \d{{4}})?"
    rf"|\b{MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
    r"|\b(?:the )?\d{1,2}(?:st|nd|rd|th)\b)"
)
UNIT = (
    r"(?:mg|mcg|µg|g|kg|kilos?|grams?|lbs?|pounds?|stone|ml|l|litres?|liters?|cups?|units?|iu"
    r"|cm|mm|m|metres?|meters?|km|k|kilomet(?:re|er)s?|miles?|feet|ft|euros?|eur|dollars?|usd"
    r"|quid|pence|francs?|chf|gbp|percent|%|hours?|hrs?|h|minutes?|mins?|days?|weeks?|months?"
    r"|years?(?: old)?|people|°c|degrees|am|pm|o'clock|square met(?:re|er)s|m²|sqm|m2)"
)
_OFTEN = r"(?:(?:once|twice|thrice|\w+ times) (?:a|per|every) (?:day|week|month|year)|daily)"
_NUMERAL = r"[€$£]?(?<![\w.])\d+(?:[.,:']\d+)*(?:k\b)?(?: ?€)?"
FIGURE = rf"(?:{DAY}|\b{_OFTEN}|{_NUMERAL}(?: ?{UNIT}\b)?|\b{NUMBER_WORD}\b(?: {UNIT}\b)?)"


_TRADES = frozenset(
    """
    accountant actor actress actuary administrator advisor adviser agent analyst anaesthetist
    animator apprentice archaeologist architect archivist artist assistant associate astronaut
    astronomer attorney auditor author baker banker barber barista barkeeper bartender beekeeper
    biologist blacksmith blogger bookkeeper bookseller botanist brewer bricklayer broker builder
    butcher buyer captain carer caregiver caretaker carpenter cashier ceo cfo coo cto chef
    chemist choreographer cleaner clerk coach cobbler coder comedian composer conductor
    consultant contractor cook coordinator copywriter counsellor counselor courier curator
    dancer dentist dermatologist designer detective developer devops dietitian director
    dispatcher doctor draughtsman driver economist editor educator electrician engineer
    entrepreneur epidemiologist estate-agent executive farmer fellow filmmaker firefighter
    fisherman florist founder cofounder co-founder freelancer gardener geographer geologist
    goldsmith grocer guard guide hairdresser handyman headteacher historian housekeeper
    housewife househusband hygienist illustrator influencer innkeeper inspector instructor
    intern interpreter investigator investor janitor jeweller joiner journalist judge keeper
    labourer landlord lawyer lecturer librarian lifeguard linguist lobbyist locksmith machinist
    magician maker manager marketer mason masseur mathematician mechanic mediator merchant
    meteorologist midwife miller miner minister model mover musician nanny neurologist
    neuroscientist notary novelist nurse nutritionist officer operator optician optometrist
    orderly organist paediatrician painter paralegal paramedic pastor pathologist pediatrician
    pharmacist philosopher photographer physician physicist physiotherapist pianist pilot
    plasterer playwright plumber poet policeman policewoman politician postdoc postman potter
    priest principal producer professor programmer psychiatrist psychologist psychotherapist
    publisher rabbi radiologist ranger realtor receptionist recruiter referee reporter
    representative researcher restaurateur roofer sailor salesman salesperson saleswoman scholar
    scientist sculptor secretary senator seamstress shipbroker shopkeeper singer smith
    sociologist soldier specialist statistician steward stewardess student stylist
    superintendent supervisor surgeon surveyor tailor teacher technician tester technologist
    therapist tiler trader trainee trainer translator treasurer truck-driver tutor undergraduate
    upholsterer vet veterinarian vicar violinist waiter waitress watchmaker weaver webmaster
    welder writer youtuber zoologist lead postgraduate sysadmin dba freelance grad dev luthier
    undertaker stonemason worker trucker ceramicist solicitor barrister councillor
    proofreader glazier farrier physio sparky chippy brickie postie cabbie gp joiner cellist
    guitarist drummer chief cadet warden umpire soprano tenor baritone undertaker
""".split()
)
_NOT_TRADES = frozenset(
    "beginner lover fan reader user member mother father sister brother person believer"
    " newcomer owner fan"
                        .split())  # fmt: skip
_STATES = frozenset(
    "student apprentice intern undergraduate postgraduate trainee freelancer".split()
)
_ROLE_END = re.compile(
    r"(?is)\s+(?:at|for|in|of|from|with|who|by|on|near|based|specialising|specializing|working"
    r"|there|here|now|who|after|not|too|during|since|until|and|studying|living|where|that|to|within"
    r"|over|through|looking|trying|currently|but|focus|via|as)\b.*|[,;(:.].*"
)

_NATIONS = """
    american british english scottish welsh irish french german spanish portuguese italian dutch
    belgian swiss austrian danish swedish norwegian finnish icelandic polish czech slovak
    hungarian romanian bulgarian greek turkish russian ukrainian belarusian lithuanian latvian
    estonian croatian serbian slovenian bosnian albanian macedonian chinese japanese korean
    vietnamese thai filipino indonesian malaysian singaporean indian pakistani bangladeshi
    nepali iranian iraqi israeli lebanese syrian egyptian moroccan algerian tunisian nigerian
    ghanaian kenyan ethiopian ugandan tanzanian zimbabwean australian canadian mexican brazilian
    argentinian argentine chilean colombian peruvian venezuelan ecuadorian bolivian uruguayan
    cuban jamaican haitian kiwi cypriot maltese georgian armenian kazakh mongolian cambodian
    afghan saudi somali sudanese catalan basque breton palestinian jordanian congolese
    senegalese angolan mozambican namibian taiwanese
""".split()
NATION = rf"(?:{'|'.join(_NATIONS)})"
_LANGUAGES = """
    english french german spanish portuguese italian dutch flemish danish swedish norwegian
    finnish icelandic polish czech slovak hungarian romanian bulgarian greek turkish russian
    ukrainian lithuanian latvian estonian croatian serbian slovenian albanian chinese mandarin
    cantonese japanese korean vietnamese thai tagalog indonesian malay hindi urdu bengali
    punjabi tamil telugu marathi gujarati persian farsi arabic hebrew swahili amharic yoruba
    igbo zulu xhosa afrikaans irish welsh gaelic catalan basque breton latin esperanto
    sign-language asl bsl quechua nepali mongolian georgian armenian
""".split()
LANGUAGE = rf"(?:{'|'.join(_LANGUAGES)}|sign language|american sign language|british sign language)"

DIET = (
    r"(?:(?:strict |mostly |fully |lifelong |lacto[- ]?ovo[- ]?|ovo[- ]?"
    r"|lacto[- ]?)?(?:vegetarian|vegan|pescatarian|pescetarian|flexitarian|fruitarian"
    r"|carnivore)|plant[- ]based|keto|paleo|kosher|halal|(?:gluten|dairy|lactose|sugar)[- ]free"
    r"|low[- ](?:carb|fodmap)|raw food|mediterranean|teetotal)"
)


_OFFICE = re.compile(
    r"(?i)(?:head|vp|vice president|director) of (?!(?:the|an?|my)\b)[a-z]+(?: (?!in|at"
    r"|for)[a-z]+)?\b"
)


def role_in(words: str) -> str | None:
    """The trade at the beginning of `words`: "senior engineer" of "senior engineer at Acme"."""
    office = _OFFICE.match(words)
    if office is not None:
        return office[0]
    role = _ROLE_END.sub("", words).strip()
    parts = role.split()
    if not 1 <= len(parts) <= 6 or not {"a", "an", "just", "only"}.isdisjoint(parts[1:]):
        return None
    head = parts[-1].lower().strip("'")
    head = head.removesuffix("s") if head not in _TRADES else head
    if head in _NOT_TRADES or (
        head not in _TRADES
        and not head.endswith(("ologist", "keeper", "smith", "wright", "monger", "ician", "warden"))
        and not (head.endswith(("sman", "swoman", "fireman", "foreman", "chairman")))
    ):
        return None
    return role


def is_learner(role: str) -> bool:
    return role.lower().split()[-1] in _STATES


# Names of things that look like any word at the beginning of a sentence.
_PRODUCTS = frozenset(
    """
    Python Rust Go Java Kotlin Swift Ruby Perl Scala Haskell Elixir Clojure Julia Lua Vim Emacs
    Neovim Linux Ubuntu Debian Windows Docker Kubernetes React Angular Vue Svelte Django Flask
    Rails Laravel Git Slack Notion Excel Word Zoom Jira Figma Photoshop Postgres Redis Kafka
    Terraform Ansible Webpack Vite Bootstrap Tailwind Obsidian Trello Asana Outlook Gmail
    Spotify Netflix Android Firefox Chrome Safari Bash Zig Celery Pandas Numpy Duolingo Twitter
    Reddit Facebook Instagram Tesla Copilot Cursor Nix Nginx Pytest Pydantic Rider Blender
    Godot Unity Unreal Airtable Todoist Evernote Roam Logseq Markdown Stripe Heroku Sass Deno Bun
""".split()
)


def is_product(words: str) -> bool:
    """Whether it begins with the name of one: one that is known, or written as no word is."""
    name = words.removeprefix("the ").split()[0].removesuffix("'s")
    inner = any(sign.isupper() or sign.isdigit() or sign in "+#" for sign in name[1:])
    return inner or name in _PRODUCTS
