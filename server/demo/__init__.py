"""The demo: rule-based agents live through real trading days on one ledger, each with its own server.

A researcher and a trader trade with a simulated broker, and a harness observes what the broker did. Then a live desk
writes down what that backtest taught, and a second run inherits the live ledger. The same agents also trade on the
wall clock, a real day a second.

Prices. `prices.csv` holds the real daily open, high, low, close (US dollars as traded, not adjusted for
dividends) and volume (shares) of AAPL, IBM and MSFT on the 588 trading days from 2007-09-04 to 2009-12-31;
none of the three split its stock in that time. The values are those of the data package bokeh-sampledata
2026.1 on PyPI (`stocks.csv.gz`), unchanged, which took them from Quandl WIKI Prices (an archived copy
supplied by marketneutral on Kaggle). Quandl declared the data public domain and permitted its redistribution
(https://web.archive.org/web/20150411011214/https://www.quandl.com/data/WIKI); the source gives no guarantee
of accuracy.

Honesty. An agent sees prices up to the current day only, acts after the close and is filled at the next open,
without costs. The rules are there to show a memory at work; they are no advice and no claim that they earn.
"""

DEFAULT_DAYS = 260
"""Trading days that a demo lives through unless told otherwise: from 2007-11-28 to 2008-12-08."""

REPLAYED_DAYS = 60
"""Trading days, the last ones of those, that the second run replays."""

LIVE_DAYS, LIVE_SKIPPED = 60, 200
"""Trading days on the wall clock, and those left out before: from 2008-09-15 to 2008-12-08."""
