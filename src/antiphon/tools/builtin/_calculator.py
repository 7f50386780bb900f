"""Exact arithmetic as a tool: decimals, percentages, functions; never ``eval``.

A hand-written parser over decimals of 50 digits.  Every size is bounded (text, nesting, exponents,
factorials), so that no expression takes long or fills the memory.

    sum      = product (("+" | "-") product)*          "2340 + 10%" is ten per cent more
    product  = signed (("*" | "/" | "//" | "%" | "of" | next to each other) signed)*
    signed   = ("+" | "-") signed | power
    power    = postfix (("^" | "**") signed)?           from the right
    postfix  = atom ("%" | "!")*
    atom     = number | constant | function "(" sum ("," sum)* ")" | "(" sum ")"
"""

import decimal
import math
import re
from collections.abc import Callable
from decimal import Decimal

from antiphon.errors import ToolError
from antiphon.tools._tool import tool

MAX_CHARS = 500
MAX_DEPTH = 40
MAX_EXPONENT = 10_000
_CONTEXT = decimal.Context(
    prec=50,
    rounding=decimal.ROUND_HALF_EVEN,
    Emax=10**6,
    Emin=-(10**6),
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
_SYMBOLS = str.maketrans(
    {
        "×": "*",  # noqa: RUF001
        "·": "*",
        "∙": "*",
        "⋅": "*",
        "÷": "/",
        "∕": "/",  # noqa: RUF001
        "−": "-",  # noqa: RUF001
        "–": "-",  # noqa: RUF001
        "—": "-",
        "^": "^",
        "[": "(",
        "]": ")",
        "{": "(",
        "}": ")",
        "\u00a0": " ",
        "\u202f": " ",
        "%": "%",
        "√": "sqrt ",
        "²": "^2",
        "³": "^3",
    }
)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:_\d+)*)(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[A-Za-zπτ][A-Za-z0-9_]*)"
    r"|(?P<mark>\*\*|//|[-+*/^%(),!=]))"
)
_CURRENCY = re.compile(r"(?:(?:US|CA|AU|NZ|HK)?[$€£¥₹₽₩₺₪₴])\s*(?=[\d.])")


@tool(threaded=False, idempotent=True)
def calculator(expression: str) -> str:
    """Work out an arithmetic expression.

    Args:
        expression: For example "17.5% of 2340" or "(3 + 4) * 12".
    """
    return calculate(expression)


def calculate(expression: str) -> str:
    """The value of an expression as plain number text.

    Exact where a decimal is; repeating decimals and roots are rounded to 12 significant digits.

    Raises:
        ToolError: It is no arithmetic expression, or too large a one.

    >>> [calculate(e) for e in ("17.5% of 2340", "2340 + 10%", "1,250 * 3", "1/3")]
    ['409.5', '2574', '3750', '0.333333333333']
    """
    if len(expression) > MAX_CHARS:
        raise ToolError(f"the expression is longer than {MAX_CHARS} characters; give a shorter one")
    with decimal.localcontext(_CONTEXT):
        try:
            return _plain(_Parser(expression).value())
        except decimal.DivisionByZero:
            raise ToolError(f"division by zero in {expression!r}") from None
        except decimal.Overflow:
            raise ToolError(f"the result of {expression!r} is too large") from None
        except decimal.InvalidOperation:
            raise ToolError(f"{expression!r} has no real value") from None


def _plain(value: Decimal) -> str:
    if not value.is_finite():
        raise decimal.InvalidOperation
    exact = value.normalize()
    digits = len(exact.as_tuple().digits)
    if digits > 28 and exact != exact.to_integral_value():
        exact = decimal.Context(prec=12).plus(value).normalize()
    if exact == 0:
        return "0"
    if exact.adjusted() > 60 or exact.adjusted() < -60:
        exact = decimal.Context(prec=12).plus(exact).normalize()
        return f"{exact:E}".replace("E+", "e").replace("E", "e")
    return f"{exact:f}"


def _whole(value: Decimal, what: str, limit: int) -> int:
    if value != value.to_integral_value() or not 0 <= value <= limit:
        raise ToolError(f"{what} needs a whole number from 0 to {limit}, got {_plain(value)}")
    return int(value)


def _factorial(value: Decimal) -> Decimal:
    return Decimal(math.factorial(_whole(value, "factorial", 1000)))


def _by_float(function: Callable[[float], float]) -> Callable[[Decimal], Decimal]:
    """A function of the math module; its result is good for 15 digits and rounded to them."""

    def call(value: Decimal) -> Decimal:
        try:
            result = function(float(value))
        except (ValueError, OverflowError):
            raise decimal.InvalidOperation from None
        return Decimal(repr(round(result, 15) if abs(result) < 1 else result))

    return call


def _round(value: Decimal, places: Decimal = Decimal(0)) -> Decimal:
    n = int(places)
    if places != n or not -30 <= n <= 30:
        raise ToolError("round takes a whole number of places from -30 to 30")
    return value.quantize(Decimal(1).scaleb(-n), rounding=decimal.ROUND_HALF_UP) + 0


def _log(value: Decimal, base: Decimal = Decimal(10)) -> Decimal:
    if base == 10:
        return value.log10()
    return _snap(value.ln() / base.ln())


def _snap(value: Decimal) -> Decimal:
    """The whole number that a value is but for the last few of 50 digits."""
    near = value.to_integral_value()
    return near if abs(value - near) < Decimal("1e-40") else value


def _root(value: Decimal, degree: Decimal = Decimal(3)) -> Decimal:
    if value < 0 and degree % 2 == 1:
        return -_root(-value, degree)
    return _power(value, 1 / degree)


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    if abs(exponent) > MAX_EXPONENT:
        raise ToolError(f"an exponent may be {MAX_EXPONENT} at most, got {_plain(exponent)}")
    if base == 0 and exponent == 0:
        return Decimal(1)
    if base == 0 and exponent < 0:
        raise decimal.DivisionByZero
    return _snap(base**exponent)


_PI = Decimal("3.14159265358979323846264338327950288419716939937511")
_CONSTANTS = {
    "pi": _PI,
    "\u03c0": _PI,
    "e": Decimal("2.71828182845904523536028747135266249775724709369996"),
    "tau": 2 * _PI,
    "\u03c4": 2 * _PI,
}
_Function = Callable[[list[Decimal]], Decimal]


def _one(function: Callable[[Decimal], Decimal]) -> tuple[_Function, int, int]:
    return (lambda values: function(values[0])), 1, 1


def _two(function: Callable[[Decimal, Decimal], Decimal]) -> tuple[_Function, int, int]:
    return (lambda values: function(values[0], values[1])), 2, 2


def _total(values: list[Decimal]) -> Decimal:
    return sum(values, Decimal(0))


def _mean(values: list[Decimal]) -> Decimal:
    return _total(values) / len(values)


def _floor(value: Decimal) -> Decimal:
    return value.to_integral_value(rounding=decimal.ROUND_FLOOR)


def _ceiling(value: Decimal) -> Decimal:
    return value.to_integral_value(rounding=decimal.ROUND_CEILING)


def _modulo(left: Decimal, right: Decimal) -> Decimal:
    return left - right * _floor(left / right)


def _exponential(value: Decimal) -> Decimal:
    if abs(value) > MAX_EXPONENT:
        raise ToolError(f"an exponent may be {MAX_EXPONENT} at most, got {_plain(value)}")
    return value.exp()


_FUNCTIONS: dict[str, tuple[_Function, int, int]] = {
    "sqrt": _one(lambda x: x.sqrt()),
    "cbrt": _one(_root),
    "root": _two(_root),
    "abs": _one(lambda x: abs(x)),
    "round": (lambda values: _round(*values), 1, 2),
    "floor": _one(_floor),
    "ceil": _one(_ceiling),
    "min": (min, 1, 50),
    "max": (max, 1, 50),
    "sum": (_total, 1, 50),
    "mean": (_mean, 1, 50),
    "average": (_mean, 1, 50),
    "avg": (_mean, 1, 50),
    "pow": _two(_power),
    "power": _two(_power),
    "mod": _two(_modulo),
    "ln": _one(lambda x: x.ln()),
    "log": (lambda values: _log(*values), 1, 2),
    "log10": _one(lambda x: x.log10()),
    "log2": _one(lambda x: _log(x, Decimal(2))),
    "exp": _one(_exponential),
    "factorial": _one(_factorial),
    "sin": _one(_by_float(math.sin)),
    "cos": _one(_by_float(math.cos)),
    "tan": _one(_by_float(math.tan)),
    "asin": _one(_by_float(math.asin)),
    "acos": _one(_by_float(math.acos)),
    "atan": _one(_by_float(math.atan)),
    "degrees": _one(_by_float(math.degrees)),
    "radians": _one(_by_float(math.radians)),
    "gcd": (lambda values: Decimal(math.gcd(*(_whole(v, "gcd", 10**30) for v in values))), 2, 50),
    "lcm": (lambda values: Decimal(math.lcm(*(_whole(v, "lcm", 10**15) for v in values))), 2, 3),
}
_WORDS = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "x": "*",
    "over": "/",
    "mod": "mod",
    "percent": "%",
    "of": "of",
}


class _Parser:
    """Recursive descent; `percent` marks a value that was written with a per cent sign."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        text = _CURRENCY.sub("", expression.translate(_SYMBOLS)).strip().strip("$€£¥₹")
        self.tokens = self._split(text.rstrip("=? "))
        self.at = 0
        self.depth = 0

    def _split(self, text: str) -> list[str]:
        tokens: list[str] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                rest = text[position:].strip()
                if not rest:
                    break
                raise self._unreadable(rest[:20])
            tokens.append(self._token(match))
            position = match.end()
        if not tokens:
            raise ToolError('the expression is empty; give one, for example "17.5% of 2340"')
        return tokens

    def _token(self, match: re.Match[str]) -> str:
        word = match.group("word")
        if word is None:
            return (
                match.group(0).strip().replace(",", "")
                if match.group("number")
                else match.group(0).strip()
            )
        word = word.lower()
        return word if word in _FUNCTIONS or word in _CONSTANTS else _WORDS.get(word, word)

    def _unreadable(self, rest: str) -> ToolError:
        return ToolError(
            f"cannot read {rest!r} in {self.expression!r}; write numbers with + - * / ^ % ( ), "
            "'of', and functions such as sqrt(2) or round(x, 2)"
        )

    def value(self) -> Decimal:
        value, _ = self._sum()
        if self.at < len(self.tokens):
            raise self._unreadable(" ".join(self.tokens[self.at : self.at + 5]))
        return value

    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self, *marks: str) -> str:
        token = self._next()
        if token and token in marks:
            self.at += 1
            return token
        return ""

    def _sum(self) -> tuple[Decimal, bool]:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ToolError(f"parentheses may be {MAX_DEPTH} deep at most")
        left, percent = self._product()
        while mark := self._take("+", "-"):
            right, of_left = self._product()
            if of_left and not percent:  # "2340 + 10%" is ten per cent more
                right = left * right
            left = left + right if mark == "+" else left - right
            percent = percent and of_left
        self.depth -= 1
        return left, percent

    def _product(self) -> tuple[Decimal, bool]:
        left, percent = self._signed()
        while True:
            mark = self._take("*", "/", "//", "%", "of", "mod")
            if not mark and not self._starts_atom():
                return left, percent
            right, right_percent = self._signed()
            percent = percent and right_percent and mark != "of"
            if mark == "/":
                left = left / right
            elif mark == "//":
                left = _floor(left / right)
            elif mark in ("%", "mod"):
                left = _modulo(left, right)
            else:
                left = left * right

    def _starts_atom(self) -> bool:
        token = self._next()
        return token == "(" or token in _FUNCTIONS or token in _CONSTANTS

    def _signed(self) -> tuple[Decimal, bool]:
        sign = 1
        while mark := self._take("+", "-"):
            sign = -sign if mark == "-" else sign
        value, percent = self._raised()
        return (-value if sign < 0 else value), percent

    def _raised(self) -> tuple[Decimal, bool]:
        base, percent = self._postfix()
        if not self._take("^", "**"):
            return base, percent
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ToolError(f"powers may be {MAX_DEPTH} deep at most")
        exponent, _ = self._signed()
        self.depth -= 1
        return _power(base, exponent), False

    def _postfix(self) -> tuple[Decimal, bool]:
        value, percent = self._atom(), False
        while True:
            if self._take("!"):
                value = _factorial(value)
            elif self._next() == "%" and self._is_percent():
                self.at += 1
                value, percent = value / 100, True
            else:
                return value, percent

    def _is_percent(self) -> bool:
        """A per cent sign stands where no value follows it; otherwise it is the remainder."""
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        return after in ("", "of", ")", ",", "+", "-", "*", "/", "//", "^", "**", "%", "!")

    def _atom(self) -> Decimal:
        token = self._next()
        self.at += 1
        if token == "(":
            value, _ = self._sum()
            self._close()
            return value
        if token in _CONSTANTS:
            return _CONSTANTS[token]
        if token in _FUNCTIONS:
            return self._function(token)
        if token[:1].isdigit() or token[:1] == ".":
            return self._number(token)
        self.at -= 1
        if not token:
            raise ToolError(f"{self.expression!r} ends too early; a value is missing at its end")
        raise self._unreadable(" ".join(self.tokens[self.at : self.at + 5]))

    def _number(self, token: str) -> Decimal:
        value = Decimal(token.replace("_", ""))
        if abs(value.adjusted()) > MAX_EXPONENT:
            raise ToolError(f"{token[:30]} is too large or too small")
        return value

    def _close(self) -> None:
        if not self._take(")"):
            raise ToolError(f"a closing parenthesis is missing in {self.expression!r}")

    def _function(self, name: str) -> Decimal:
        function, least, most = _FUNCTIONS[name]
        if not self._take("("):
            if most == 1:  # "sqrt 16", "√16"
                return function([self._postfix()[0]])
            raise ToolError(f"{name} needs its values in parentheses, as in {name}(1, 2)")
        values = [self._sum()[0]]
        while self._take(","):
            values.append(self._sum()[0])
        self._close()
        if not least <= len(values) <= most:
            raise ToolError(f"{name} takes {least} to {most} values, got {len(values)}")
        return function(values)
