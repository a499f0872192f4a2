"""Names of products, languages and services, which people hold opinions on."""

from __future__ import annotations

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
