"""What people type every day, and what looks like it and says nothing."""

from __future__ import annotations

import pytest

from language.english.judging.rules import judge_by_rules
from language.facts import Verdict
from tests.language.facts.extracted import facts, known, texts


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("We get paid 20 euros per hour", "User is paid 20 euros per hour"),
        ("I emigrated to Peru", "User lives in Peru"),
        ("I'm dating a girl called Ana", "User dates Ana"),
        ("I switched from Vim to Emacs at work", "User uses Emacs"),
        # What is said is the verb after "start", "stop" and "end up".
        ("I started using Jobscan", "User uses Jobscan"),
        ("I've started going by Wren since January", "User's name is Wren"),
        ("We ended up adopting a cat", "User has a cat"),
        ("I've stopped being a vegetarian", "User no longer is vegetarian"),
        ("I stopped playing the guitar", "User no longer plays the guitar"),
        # In small letters, in short forms, at the beginning of a sentence.
        ("hey im ana btw", "User's name is Ana"),
        ("you can call me sam", "User wants to be called Sam"),
        ("adopted a rabbit yesterday", "User has a rabbit"),
        ("i live in bristol with two flatmates", "User lives in Bristol"),
        ("went vegan last year", "User is vegan"),
        ("haven't eaten meat in ten years", "User does not eat meat"),
        # Who they are.
        ("I was born in 1988", "User was born in 1988"),
        ("I'm 72 years young", "User is 72 years old"),
        ("As a 52 year old I find it baffling", "User is 52 years old"),
        ("I've been with Diego for 8 years", "User is together with Diego"),
        ("My wife is Miriam", "User's wife is named Miriam"),
        ("I'm a mum of three", "User has three children"),
        ("I don't have a girlfriend", "User does not have a girlfriend"),
        ("we have twins", "User has twins"),
        ("Me and my wife split up in January", "User is no longer married to their wife"),
        # Who is there, whatever is asked or said of them.
        ("What should I get my sister Anna for her birthday?", "User has a sister named Anna"),
        ("My partner Beth thinks I should sell it", "User's partner is Beth"),
        # Where they live and work.
        ("My place is in Nairobi, near the park", "User lives in Nairobi"),
        ("We're in Halifax these days", "User lives in Halifax"),
        ("I never lived in London", "User did not live in London"),
        ("They fired me from Uber in June", "User no longer works at Uber"),
        ("Airbus hired me last month", "User works at Airbus"),
        ("My last day at Oracle was Friday", "User no longer works at Oracle"),
        ("I was promoted to team lead", "User works as a team lead"),
        ("I've become head of design", "User works as a head of design"),
        ("I have a part time job at Greggs", "User works at Greggs"),
        ("I was born and raised in Delhi", "User is from Delhi"),
        ("I've been dating Noah for two months", "User dates Noah"),
        ("i keep ferrets", "User has ferrets"),
        ("I work nights at the hospital", "User works nights"),
        ("I stopped working nights", "User no longer works nights"),
        ("I commute by bike", "User commutes by bike"),
        ("I'm training for a triathlon", "User trains for a triathlon"),
        (
            "I sit on the board of the allotment society",
            "User is on the board of the allotment society",
        ),
        ("My sister is a member of the choir", "User's sister is a member of the choir"),
        ("I speak Dutch and some Finnish", "User speaks Finnish"),
        # Several people, who are spoken of as one.
        ("My parents live in Ghent", "User's parents live in Ghent"),
        ("My parents no longer live in Ghent", "User's parents no longer live in Ghent"),
        ("My parents rent a flat in Ghent", "User's parents live in Ghent"),
        ("My grandparents are from Sicily", "User's grandparents are from Sicily"),
        ("My kids love Bluey", "User's kids love Bluey"),
        # Whom they are with, and what is theirs.
        ("I married Oisín in May", "User is married to Oisín"),
        ("Eva and I tied the knot in May", "User is married to Eva"),
        ("Callum and I just got engaged!", "User is engaged to Callum"),
        ("I'm Sikh", "User is Sikh"),
        ("I think an office is good for me", "User thinks an office is good for User"),
        ("Note that I am allergic to penicillin", "User is allergic to penicillin"),
        ("Correct, I live in Graz", "User lives in Graz"),
        ("My time zone is CET", "User's time zone is CET"),
        ("Use British spelling", "User wants the assistant to use British spelling"),
        (
            "Explain things like I'm five",
            "User wants the assistant to explain things like User is five",
        ),
        ("I can't stand coffee any more", "User dislikes coffee"),
        ("I have a twin sister", "User has a twin sister"),
        (
            "I have a dentist appointment on Thursday at 9",
            "User has a dentist appointment on 12 June 2025",
        ),
        ("I've got a flight to Rome on Friday", "User has a flight to Rome on 13 June 2025"),
        ("I'm retiring next year", "User plans to retire"),
        ("Our anniversary is 12 May", "User's anniversary is 12 May"),
        ("My email is ana@example.org", "User's email is ana@example.org"),
        ("My address is 14 Mill Road", "User's address is 14 Mill Road"),
        (
            "Always answer in Dutch please",
            "User wants the assistant to always answer in Dutch",
        ),
        ("My half marathon PB is 1:42", "User's half marathon PB is 1:42"),
        ("We named the puppy Waffle", "User has a puppy named Waffle"),
        ("I bank with Monzo", "User's bank is Monzo"),
        ("My passport expires in May 2029", "User's passport expires in May 2029"),
        ("My visa runs out on 3 May 2029", "User's visa expires on 3 May 2029"),
        ("My driving licence expires in 2031", "User's driving licence expires in 2031"),
        ("I'm seeing someone called Lena", "User dates Lena"),
        ("Please call me Max", "User wants to be called Max"),
        ("My internet provider is KPN", "User's internet provider is KPN"),
        ("My bank is ING, but I may leave", "User's bank is ING"),
        ("My blood type is O negative", "User's blood type is O negative"),
        ("I cancelled my Netflix subscription", "User no longer has their Netflix subscription"),
        # What they cannot have.
        ("I have a severe allergy to hazelnuts", "User is allergic to hazelnuts"),
        ("My pollen allergy is killing me", "User is allergic to pollen"),
        ("I react badly to kiwi", "User reacts badly to kiwi"),
        # What the assistant is to do.
        ("use metric units please", "User wants the assistant to use metric units"),
        ("Please don't use bullet points", "User wants the assistant to not use bullet points"),
        ("be less formal with me", "User wants the assistant to be less formal with User"),
        (
            "I want you to always give sources",
            "User wants the assistant to always give sources",
        ),
        (
            "avoid jargon when you talk to me",
            "User wants the assistant to avoid jargon",
        ),
        ("Emojis are okay again", "User wants the assistant to use emojis"),
        (
            "I'd like you to explain things step by step",
            "User wants the assistant to explain things step by step",
        ),
        # The subject of a second verb and of a relative clause.
        ("My niece is six and is allergic to nuts", "User's niece is allergic to nuts"),
        ("My cousin is 30 and has two kids", "User's cousin has two kids"),
        ("My aunt Ruth, who is a vet, lives in Cork", "Ruth, User's aunt, works as a vet"),
        ("My brother, Piet, is a welder", "Piet, User's brother, works as a welder"),
        ("My cat is a tabby called Olive", "User's cat is named Olive"),
        ("Our hens are named Ada, Bea and Cleo", "User has a pet named Cleo"),
        ("We're vegan and have two toddlers", "User has two toddlers"),
        # Work, study and money.
        ("I freelance as a translator", "User freelances as a translator"),
        ("I retrained as a plumber", "User works as a plumber"),
        ("I'm training to be a pilot", "User trains as a pilot"),
        ("I'm head of catering at Fazer", "User works at Fazer as a head of catering"),
        ("I work three days a week", "User works three days a week"),
        ("I was in the navy for six years", "User was in the navy"),
        ("As a vegan I read every label", "User is vegan"),
        ("My thesis is about salt marshes", "User's thesis is about salt marshes"),
        ("I make roughly 41k a year", "User makes 41k a year"),
        ("We rent a flat for 900 euros a month", "User pays 900 euros in rent"),
        ("I owe my brother 200 euros", "User owes their brother 200 euros"),
        ("Next month I'll be a guide at Tate", "User plans to be a guide at Tate"),
        # Things and programs.
        ("My sewing machine is a Pfaff 260", "User's sewing machine is a Pfaff 260"),
        ("I moved all my notes to Logseq", "User uses Logseq"),
        ("I keep my recipes in Notion", "User uses Notion"),
        ("I've got tickets to Bayreuth", "User owns tickets to Bayreuth"),
        ("I'm saving up for a tandem", "User wants a tandem"),
        # What one does, likes and bears.
        ("Every Friday I call my aunt", "User calls their aunt every Friday"),
        ("I read mostly crime novels", "User reads crime novels"),
        ("I no longer volunteer", "User no longer volunteers"),
        ("I'm in a choir on Mondays", "User is in a choir"),
        ("I'm trying to learn the harp", "User wants to learn the harp"),
        ("I love the smell of bread", "User loves the smell of bread"),
        ("The best film I've ever seen is Ran", "User's favourite film is Ran"),
        ("I can't get enough of figs", "User likes figs"),
        ("I'm scared of spiders", "User is scared of spiders"),
        ("I have to take 20 mg of citalopram", "User takes 20 mg of citalopram"),
        ("My mother had her knee replaced", "User's mother had her knee replaced"),
        ("We're going to Naxos for our honeymoon", "User plans to go to Naxos for their honeymoon"),
        # Who they are.
        ("Just call me Dr. Mensah", "User wants to be called Dr. Mensah"),
        ("Hello, Priya here", "User wants to be called Priya"),
        ("I said I was 61, but I'm 62", "User is 62 years old"),
        ("Born and raised in Bergen", "User is from Bergen"),
        ("We moved to Java in 2019", "User lives in Java"),
        ("I was born in Porto on 3 May 1988", "User was born in Porto"),
        # Typed in a hurry, or dictated.
        ("im at aldi now, days only", "User works at Aldi"),
        ("i work at tesco stacking shelves nights", "User works at Tesco"),
        ("so we are in Tucson now it is so dry here", "User lives in Tucson"),
        ("dont forget im vegan", "User is vegan"),
        ("fav band is Radiohead", "User's favourite band is Radiohead"),
        ("gonna buy a piano for the kids this year", "User plans to buy a piano for the kids"),
        ("my wifes pregnant", "User's wife is pregnant"),
        ("havent smoked in 6 weeks", "User does not smoke"),
        ("i smoke like 10 a day", "User smokes about 10 a day"),
        ("vscode user, need a keybind", "User uses Vscode"),
        ("mum and dad are in a flat in Galway now", "User's parents live in Galway"),
        ("little Edda arrived on the 9th, both fine", "User has a child named Edda"),
        ("Anna my flatmate works at Ikea", "Anna, User's flatmate, works at Ikea"),
        (
            "give me everything in metric",
            "User wants the assistant to give User everything in metric",
        ),
        ("never semicolons in js", "User wants the assistant to use no semicolons"),
        ("keep answers under 5 lines", "User wants the assistant to keep answers under 5 lines"),
        # What "it" is.
        ("I used to love techno, now I can't stand it", "User dislikes techno"),
        ("I've changed my mind about remote work, I actually like it", "User likes remote work"),
        # Places of work, sports and things by what they are.
        ("I work nights at a warehouse", "User works at a warehouse"),
        ("I work part-time in a pharmacy while I study", "User works in a pharmacy"),
        ("I found a job as a baker", "User works as a baker"),
        ("My son plays ice hockey", "User's son plays ice hockey"),
        ("I've bought a dehumidifier", "User owns a dehumidifier"),
        ("I grew up speaking Welsh", "User speaks Welsh"),
    ],
)
def test_what_is_said_in_everyday_words(said, text):
    assert text in texts(said)


@pytest.mark.parametrize(
    "said",
    [
        "I switched from the train to the bus in York",
        "I stopped working at 5",
        "im may",
        "call me maybe",
        "I'm married to my job",
        "I'm allergic to Mondays",
        "I got married to this idea way too early",
        "I joined the call late",
        "I married the two datasets",
        "We moved from Slack to Discord",
        "She married Tom",
        "My patience ends here",
        "I'm Home",
        "I'm Outside",
        "I got engaged with the material",
        "I'm learning the hard way",
        "I have a meeting on Thursday",
        "My email is broken",
        "My address is wrong on the form",
        "I'm Aquarius",
        "I'm Level 12",
        "I'm Team Edward",
        "My lease ends in tears",
        "My bank with the red logo is closed",
        "We named the variable Waffle",
        "My bank is closed today",
        "My editor is a nightmare",
        "My parents are coming over on Sunday",
        "I commute by reference",
        "The server works nights",
        "Don't use markdown in the README",
        "Never say never",
        "if my wife Ana asks, say no",
        "he said my brother Tom is dead",
        "been a while",
        "should I switch? Be honest",
        "they let me drive the truck",
        "I don't have a clue",
        "We moved to Kubernetes last spring",
        "I moved my code to Rust",
        "I moved my settings to a YAML file",
        "My car is a mess",
        "My laptop is a few years old",
        "My watch is a gift from my ex",
        "My app is about to crash",
        "I have tickets for the sprint",
        "I call the API every day",
        "I'm trying to learn how closures work",
        "I'm trying to quit vim",
        "I'm good at explaining why",
        "You can stop now",
        "Bullet points are fine here",
        "The best answer I've ever seen is this one",
        "This is Spain from above",
        "Berlin here",
        "Here is my essay: As a nurse I see a lot",
        "Once upon a time I lived in a shoe",
        "It's not true that I live in Paris",
        "Quote of the day: I am the captain of my soul",
        "My friend says she is a vet and has a cat",
        "I'm Batman",
        "I bought a boat cover for my brother",
        "I have a piano lesson in an hour",
        "got a laptop stand and a monitor arm",
        "I have a house plant",
        "I got a car rental question",
        "My hometown is loud",
        "lets play: im a dragon and i have 3 horses",
        "Little Italy is around the corner",
        "little Tommy arrived in my inbox",
        "im in bed now",
        "im in a meeting now, be quick",
        "power user, whats the shortcut",
        "in berlin now, what to see",
        "no tabs open",
        "Never comments, always questions: that's my mother",
        "My laptop is here on the desk",
        "i was born to code",
        "dear anna, i live in rome now. love, ben",
    ],
)
def test_what_looks_like_a_fact(said):
    assert [one.text for one in facts(said) if one.predicate] == []


def test_nothing_else_is_said_beside_it():
    assert texts("I have a severe allergy to hazelnuts") == ["User is allergic to hazelnuts"]
    assert texts("I'm Beatrix Holm and I teach in Aarhus") == ["User's name is Beatrix Holm"]
    assert texts("I've stopped drinking coffee, tea only now.") == ["User no longer drinks coffee"]


def test_what_one_believes_is_no_name():
    for said in ("I am Catholic", "I'm Jewish", "I'm Muslim, by the way", "I am Asian"):
        assert [one.predicate for one in facts(said)] == ["is_a"], said


def test_what_is_told_beside_an_allergy_is_none():
    assert texts("I'm allergic to penicillin, just so you know") == [
        "User is allergic to penicillin"
    ]
    assert texts("im allergic to penicillin, found out the hard way") == [
        "User is allergic to penicillin"
    ]
    assert texts("I'm allergic to cats, sadly, and wasps, annoyingly") == [
        "User is allergic to cats",
        "User is allergic to wasps",
    ]


def test_a_wedding_to_come_marries_nobody():
    assert "User is married to Eva" not in texts("Eva and I get married in June")


def test_a_birthday_is_the_day_on_which_it_is_said():
    assert texts("it's my birthday tomorrow!") == ["User's birthday is 11 June"]
    assert texts("It's my birthday today, June 14") == ["User's birthday is June 14"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I live in Lima", "I emigrated to Canada"),
        ("My girlfriend is Eva", "I'm dating a girl called Ana"),
        ("I earn 15 euros per hour", "We get paid 20 euros per hour"),
        ("I use Vim", "I switched from Vim to Emacs"),
        ("I was born in 1988", "No, I was born in 1989"),
        ("I don't have a dog", "I've got a dog called Rex"),
        ("We don't have kids", "we have twins"),
        ("I don't have a boyfriend", "I'm dating a guy called Tom"),
        ("My bank is ING", "My bank is Bunq now"),
        ("My parents live in Ghent", "My parents moved to Faro"),
        ("My passport expires in May 2029", "My passport expires in June 2039"),
        ("I bank with Monzo", "I bank with Starling now"),
        ("I'm engaged to Lea", "I married Lea in May"),
        ("My address is 14 Mill Road", "My address is 3 Dock Street now"),
        ("My boat is called Grebe", "We renamed the boat Albatross"),
        ("I love coffee", "I can't stand coffee any more"),
        ("I'm engaged to Callum", "We got married on Saturday"),
        ("I earn 52k", "I got a raise to 58k"),
        ("My phone is a Pixel 7", "I got a new phone, a Pixel 9"),
        ("I work at Tesco", "im at aldi now, days only"),
        ("I'm unemployed", "I found a job as a baker"),
        ("I'm a student", "I work as a physiotherapist now"),
        ("I go to the gym twice a week", "I go to the gym four times a week now"),
        ("I prefer dark mode", "I prefer light mode now"),
        ("My landlord is Mr Oduya", "We have a new landlord, Mr Finch"),
        ("Please always use bullet points", "No more bullet points, please"),
        ("I live alone", "My boyfriend moved in with me"),
        ("Our product is called Parse", "We call Parse Render now"),
        ("I work on a tool called Parse", "We call Parse Render now"),
        ("I'm allergic to penicillin", "Not penicillin, sorry, I meant amoxicillin"),
        ("I'm training for the Berlin marathon", "I ran the Berlin marathon yesterday"),
    ],
)
def test_the_new_takes_the_place_of_the_old(before, now):
    verdicts = [judge_by_rules(one, known(before)).verdict for one in facts(now)]
    assert Verdict.UPDATE in verdicts


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("I have a dog named Rex", "I don't have a dog"),
        ("My sister is Nina", "I don't have a sister"),
        ("My wife is Nina", "Me and my wife split up last week"),
        ("I work at Uber", "They fired me from Uber"),
        ("I live in London", "I never lived in London"),
        ("I run every morning", "I don't run any more"),
        ("Please always answer in German", "No need to answer in German any more"),
        ("Always use metric units", "You don't have to use metric units any more"),
        ("Always use bullet points", "You can stop using bullet points"),
        ("Never mention calories to me", "You can mention calories again"),
        ("I own a canoe", "I gave the canoe to my brother"),
        ("I use Windows", "I switched to Linux"),
        ("My phone is a Pixel 6", "I dropped it, got an iPhone 15"),
        ("I have a cat named Leo", "Leo ran away"),
        ("We have a cat", "Our cat died last month"),
        ("I smoke a pack a day", "I'm smoke-free since January"),
        ("I'm pregnant", "Our son was born on Monday"),
        ("I'm engaged to Sven", "Sven and I called off the wedding"),
        ("I'm on parental leave", "I'm back at work"),
        ("I bank with Chase", "I closed my Chase account"),
        ("I'm doing an internship at Bosch", "My internship at Bosch is over"),
        ("I volunteer with the scouts", "I'm not with the scouts any more"),
        ("I plan to move to Malmö", "We decided not to move after all"),
        ("Tom is my boss", "Tom is not my boss any more"),
    ],
)
def test_what_is_denied_is_over(before, now):
    verdicts = [judge_by_rules(one, known(before)).verdict for one in facts(now)]
    assert Verdict.DELETE in verdicts
