"""The time of day as a tool, in any time zone or known city."""

from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

from antiphon.errors import ToolError
from antiphon.tools._tool import tool
from antiphon.tools.builtin._data import find_city, fold

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@tool(threaded=False, idempotent=True)
def current_time(timezone: str = "UTC") -> dict[str, str]:
    """Current date and time.

    Args:
        timezone: City or time zone, e.g. "Tokyo".
    """
    zone = find_zone(timezone)
    now = datetime.now(ZoneInfo(zone))
    return {
        "timezone": zone,
        "time": now.isoformat(timespec="seconds"),
        "weekday": _WEEKDAYS[now.weekday()],
    }


def find_zone(name: str) -> str:
    """The IANA name of a time zone, from that name in any case or from a city's.

    Raises:
        ToolError: There is no such zone and no such city.

    >>> find_zone("tokyo"), find_zone("utc"), find_zone("europe/paris")
    ('Asia/Tokyo', 'UTC', 'Europe/Paris')
    """
    city = find_city(name)
    if city is not None:
        return city["timezone"]
    wanted = fold(name).replace(" ", "_")
    zones = available_timezones() | {"UTC"}
    for zone in sorted(zones, key=len):
        if zone.lower() == wanted:
            return zone
    for zone in sorted(zones, key=len):
        if zone.lower().rpartition("/")[2] == wanted:
            return zone
    raise ToolError(
        f'no time zone or city named {name!r}; give a city such as "Tokyo" or a zone such as '
        '"Europe/Paris"'
    )
