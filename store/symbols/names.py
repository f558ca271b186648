"""Names by which people call well-known instruments, in the spelling of their columns.

Only to understand a query: a name in a text or a column is kept as it was typed. Names count only as they are
written here, with their capitals, since many are common words too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .spelling import one_spelling

_TABLE: Final = """
AAPL Apple; MSFT Microsoft; NVDA Nvidia, NVIDIA; AMZN Amazon; GOOGL|GOOG Alphabet, Google; META Meta
Platforms, Facebook; TSLA Tesla; AVGO Broadcom; ORCL Oracle; CRM Salesforce; ADBE Adobe; AMD Advanced Micro
Devices; INTC Intel; QCOM Qualcomm; TXN Texas Instruments; MU Micron; ASML|ASML.AS ASML; TSM|2330.TW TSMC,
Taiwan Semiconductor; AMAT Applied Materials; LRCX Lam Research; ARM Arm Holdings; SMCI Supermicro, Super
Micro; DELL Dell; HPQ Hewlett-Packard; IBM IBM; CSCO Cisco; NOW ServiceNow; SNOW Snowflake; PLTR Palantir;
DDOG Datadog; CRWD CrowdStrike; PANW Palo Alto Networks; ZS Zscaler; NET Cloudflare; MDB MongoDB; SHOP
Shopify; PYPL PayPal; COIN Coinbase; HOOD Robinhood; SOFI SoFi; UBER Uber; LYFT Lyft; ABNB Airbnb; EXPE
Expedia; DASH DoorDash; NFLX Netflix; DIS Disney; WBD Warner Bros; PARA Paramount; SPOT Spotify; RBLX
Roblox; EA Electronic Arts; SNAP Snapchat; PINS Pinterest; RDDT Reddit; MSTR MicroStrategy; GME GameStop;
AMC AMC; RIVN Rivian; F Ford; GM General Motors; TM|7203.T Toyota; HMC|7267.T Honda; RACE|RACE.MI Ferrari;
STLA Stellantis; BA Boeing; EADSY|AIR.PA Airbus; LMT Lockheed Martin, Lockheed; RTX Raytheon; NOC Northrop
Grumman; GD General Dynamics; GE General Electric; HON Honeywell; CAT Caterpillar; DE Deere, John Deere; MMM
3M; UPS UPS; FDX FedEx; UNP Union Pacific; DAL Delta Air Lines, Delta; UAL United Airlines; AAL American
Airlines; LUV Southwest Airlines; RCL Royal Caribbean; JPM JPMorgan, JP Morgan; BAC Bank of America; WFC
Wells Fargo; C Citigroup, Citibank; GS Goldman Sachs, Goldman; MS Morgan Stanley; SCHW Charles Schwab,
Schwab; BLK BlackRock; BX Blackstone; KKR KKR; AXP American Express, Amex; V Visa; MA Mastercard; COF
Capital One; BRK.B Berkshire Hathaway, Berkshire; ALL Allstate; MET MetLife; AIG AIG; KEY KeyCorp; T AT&T;
VZ Verizon; TMUS T-Mobile; CMCSA Comcast; CHTR Charter Communications; WMT Walmart; COST Costco; TGT Target;
HD Home Depot; LOW Lowe's; KR Kroger; DG Dollar General; DLTR Dollar Tree; M Macy's; KSS Kohl's; BBY Best
Buy; NKE Nike; LULU Lululemon; ADDYY|ADS.DE Adidas; SBUX Starbucks; MCD McDonald's, McDonalds; CMG Chipotle;
YUM Yum Brands; KO Coca-Cola; PEP PepsiCo, Pepsi; MDLZ Mondelez; KHC Kraft Heinz; PG Procter & Gamble; CL
Colgate; UL|ULVR.L Unilever; PM Philip Morris; MO Altria; BUD Anheuser-Busch; DEO Diageo; JNJ Johnson &
Johnson; PFE Pfizer; MRK Merck; ABBV AbbVie; LLY Eli Lilly, Lilly; NVO|NOVO.B.CO Novo Nordisk; MRNA Moderna;
BNTX BioNTech; GILD Gilead; AMGN Amgen; BMY Bristol Myers; REGN Regeneron; BIIB Biogen; UNH UnitedHealth;
CVS CVS; HUM Humana; ISRG Intuitive Surgical; MDT Medtronic; ABT Abbott; TMO Thermo Fisher; XOM Exxon,
ExxonMobil; CVX Chevron; COP ConocoPhillips; OXY Occidental; SLB Schlumberger; HAL Halliburton; BP|BP.L BP;
SHEL|SHEL.L Shell; TTE|TTE.PA TotalEnergies; EQNR Equinor; FSLR First Solar; ENPH Enphase; NEE NextEra; DUK
Duke Energy; SO Southern Company; CEG Constellation Energy; VST Vistra; GEV GE Vernova; FCX Freeport; NEM
Newmont; BHP BHP; RIO Rio Tinto; VALE Vale; AA Alcoa; X US Steel; CLF Cleveland-Cliffs; A Agilent; ARE
Alexandria Real Estate; O Realty Income; PLD Prologis; AMT American Tower; SPG Simon Property; IT Gartner;
ON Onsemi, ON Semiconductor; BABA|9988.HK Alibaba; JD JD.com; PDD Pinduoduo; BIDU Baidu; TCEHY|0700.HK
Tencent; NIO NIO; BYDDY BYD; SONY|6758.T Sony; NTDOY|7974.T Nintendo; SFTBY|9984.T SoftBank; SAP|SAP.DE SAP;
SIEGY|SIE.DE Siemens; VWAGY|VOW3.DE Volkswagen; MBGYY|MBG.DE Mercedes; BMWYY|BMW.DE BMW; LVMUY|MC.PA LVMH;
NSRGY|NESN.SW Nestle, Nestlé; RHHBY|ROG.SW Roche; NVS|NOVN.SW Novartis; AZN|AZN.L AstraZeneca; GSK GSK;
HSBC|HSBA.L HSBC; UBS UBS; DB Deutsche Bank; BCS Barclays; ING ING; SAN Santander; BTC/USD|BTC Bitcoin;
ETH/USD|ETH Ethereum, Ether; SOL/USD|SOL Solana; XRP/USD Ripple; DOGE/USD Dogecoin; ADA/USD Cardano; LTC/USD
Litecoin; LINK/USD Chainlink; DOT/USD Polkadot;
"""


def _read(table: str) -> dict[str, tuple[str, ...]]:
    names: dict[str, tuple[str, ...]] = {}
    for entry in table.replace("\n", " ").split(";"):
        symbols, _, called = entry.strip().partition(" ")
        for name in called.split(","):
            if name.strip():
                names[name.strip()] = tuple(one_spelling(symbol) for symbol in symbols.split("|"))
    return names


NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(_read(_TABLE))
"""Each name as it is written, and the symbols it is known under, where it is listed more than once."""

MERE_WORDS: Final = frozenset(
    {
        "Apple",
        "Delta",
        "Ether",
        "Ford",
        "Oracle",
        "Paramount",
        "Robinhood",
        "Shell",
        "Snowflake",
        "Target",
        "Visa",
    }
)
"""Names that begin a sentence as mere words too: where nothing is kept of them, they say nothing of the query."""

_LEAST_CAPITALS: Final = 5
_WRITTEN: Final = {name: name for name in NAMES} | {
    name.upper(): name for name in NAMES if len(name) >= _LEAST_CAPITALS and name.upper() not in NAMES
}
"""Each way in which a name may be written, in capitals too, and the name."""

_ANY: Final = re.compile(
    r"(?<!\w)(" + "|".join(re.escape(name) for name in sorted(_WRITTEN, key=len, reverse=True)) + r")(?!\w)"
)


def named_in(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The names that a text holds, each with its symbols, in order."""
    return tuple((found.group(), NAMES[_WRITTEN[found.group()]]) for found in _ANY.finditer(text))
