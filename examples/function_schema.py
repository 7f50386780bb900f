"""The schema that a model sees of a function, as `transformers.utils.get_json_schema` gives it.

python examples/function_schema.py
"""

import json

from antiphon import tool


@tool
def multiply(a: float, b: float) -> float:
    """A function that multiplies two numbers.

    Args:
        a: The first number to multiply
        b: The second number to multiply
    """
    return a * b


def main() -> None:
    """Print the schema, and what a call with it answers."""
    print(json.dumps(multiply.spec.to_openai(), indent=2))
    print(multiply(6.0, 7.0))


if __name__ == "__main__":
    main()
