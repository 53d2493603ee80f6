"""The text of Python: names, docstrings, comments."""

import keyword
import textwrap

from .description import Call, words

HEAD = "# Written by clients/generate from the API description.\n"
WIDTH = 120


def snake_case(name: str) -> str:
    snake = "_".join(words(name))
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def class_name(name: str, *, is_async: bool = False) -> str:
    """`projects.teamGrants` is the class `ProjectsTeamGrants`."""
    pascal = "".join(word.capitalize() for word in words(name))
    return f"Async{pascal}" if is_async else pascal


def noun_name(name: str) -> str:
    return ".".join(snake_case(word) for word in name.split("."))


def call_name(call: Call) -> str:
    return f"{noun_name(call.noun)}.{snake_case(call.verb)}"


def docstring(text: str, indent: str) -> str:
    """A docstring; of several lines where it is long."""
    text = text.strip()
    text = text if text.endswith((".", ":", "?")) else f"{text}."
    text = text.replace("\\", "\\\\").replace('"""', "'''").replace("`", "``").replace("````", "``")
    paragraphs = [
        "\n".join(
            line
            for one in paragraph.split("\n")
            for line in textwrap.wrap(
                one, WIDTH - len(indent), break_long_words=False, break_on_hyphens=False,
                subsequent_indent="  " if one.startswith("- ") else "",
            )
        )
        for paragraph in text.split("\n\n")
    ]
    whole = "\n\n".join(paragraphs)
    closing = '"""' if "\n" not in whole and len(whole) + len(indent) + 6 <= WIDTH else f'\n{indent}"""'
    return indent + ('"""' + whole + closing).replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n").replace(
        f"\n{indent}{indent}", f"\n{indent}") + "\n"


def field_comment(text: str, indent: str) -> str:
    text = " ".join(text.replace("`", "``").split())
    wrapped = textwrap.wrap(text, WIDTH - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
    return "".join(f"{indent}#: {line}\n" for line in wrapped)


def quoted_text(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
