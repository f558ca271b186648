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
Litecoin; LINK/USD Chainlink; DOT/USD Polkadot; PTON Peloton; ZM Zoom; DOCU DocuSign; OKTA Okta; TWLO
Twilio; TEAM Atlassian; WDAY Workday; INTU Intuit; ADSK Autodesk; ACN Accenture; CTSH Cognizant; GRMN
Garmin; ROKU Roku; ETSY Etsy; EBAY eBay; W Wayfair; CHWY Chewy; CVNA Carvana; DKNG DraftKings; MGM MGM
Resorts; WYNN Wynn Resorts; LVS Las Vegas Sands; HLT Hilton; MAR Marriott; NUE Nucor; SHW Sherwin-Williams;
DOW Dow Chemical; DD DuPont; EMR Emerson; ETN Eaton; ROK Rockwell Automation; CMI Cummins; PCAR Paccar; NSC
Norfolk Southern; CSX CSX; JBLU JetBlue; SAVE Spirit Airlines; NCLH Norwegian Cruise; APO Apollo Global; CG
Carlyle; PRU Prudential; AFL Aflac; CB Chubb; MCO Moody's; SPGI S&P Global; MSCI MSCI; ICE Intercontinental
Exchange; PNC PNC; TFC Truist; USB US Bancorp; RF Regions Financial; FITB Fifth Third; SYF Synchrony; DFS
Discover Financial; ALLY Ally Financial; UPST Upstart; AFRM Affirm; NU Nubank, Nu Holdings; MELI
MercadoLibre; SE Sea Limited; GRAB Grab Holdings; CPNG Coupang; TCOM Trip.com; LI Li Auto; XPEV XPeng; TTD
Trade Desk; U Unity Software; BILL Bill.com; SQ Square; POAHY|P911.DE Porsche; RNLSY|RNO.PA Renault; VLVLY
Volvo; HESAY|RMS.PA Hermes, Hermès; PPRUY|KER.PA Kering; CFRUY|CFR.SW Richemont; BURBY|BRBY.L Burberry;
LRLCY|OR.PA L'Oréal, L'Oreal; DANOY|BN.PA Danone; CRRFY|CA.PA Carrefour; HEINY|HEIA.AS Heineken;
BAYRY|BAYN.DE Bayer; BASFY|BAS.DE BASF; ALIZY|ALV.DE Allianz; MURGY|MUV2.DE Munich Re; DTEGY|DTE.DE Deutsche
Telekom; DHLGY|DHL.DE DHL, Deutsche Post; DLAKY|LHA.DE Lufthansa; RNMBY|RHM.DE Rheinmetall; IFNNY|IFX.DE
Infineon; ZLNDY|ZAL.DE Zalando; ADYEY|ADYEN.AS Adyen; PROSY|PRX.AS Prosus; PHG|PHIA.AS Philips; GLNCY|GLEN.L
Glencore; NGLOY|AAL.L Anglo American; RYCEY|RR.L Rolls-Royce; BAESY|BA.L BAE Systems; VOD|VOD.L Vodafone;
LYG|LLOY.L Lloyds; NWG|NWG.L NatWest; TSCDY|TSCO.L Tesco; RYAAY Ryanair; EJTTF|EZJ.L easyJet;
SSNLF|005930.KS Samsung; 000660.KS SK Hynix; HYMTF|005380.KS Hyundai; 000270.KS Kia; 2317.TW Foxconn, Hon
Hai; 2454.TW MediaTek; TOELY|8035.T Tokyo Electron; KYCCF|6861.T Keyence; FRCOY|9983.T Fast Retailing,
Uniqlo; HTHIY|6501.T Hitachi; MSBHF|8058.T Mitsubishi; NMR|8604.T Nomura; PCRFY|6752.T Panasonic;
NSANY|7201.T Nissan; FUJHY|7270.T Subaru; MZDAY|7261.T Mazda; RELIANCE.NS Reliance Industries; TTM Tata
Motors; INFY Infosys; WIT Wipro; HDB HDFC; PBR Petrobras; ITUB Itaú, Itau; BBD Bradesco; CX Cemex; 2222.SR
Aramco, Saudi Aramco; GOLD Barrick; AEM Agnico Eagle; WPM Wheaton; FNV Franco-Nevada; CCJ Cameco; TECK Teck;
SU Suncor; ENB Enbridge; RY Royal Bank of Canada; TD TD Bank; CSIQ Canadian Solar; BYND Beyond Meat; TLRY
Tilray; CGC Canopy Growth; UNI/USD Uniswap; MATIC/USD Polygon; SHIB/USD Shiba Inu; XLM/USD Stellar; BNB/USD
Binance Coin; TRX/USD Tron; MARA Marathon Digital; RIOT Riot Platforms; CLSK CleanSpark; GLXY Galaxy
Digital; MCHP Microchip; ADI Analog Devices; MRVL Marvell; NXPI NXP; STM STMicroelectronics; WDC Western
Digital; STX Seagate; KLAC KLA; SNPS Synopsys; CDNS Cadence; ANET Arista; FTNT Fortinet; S SentinelOne; HUBS
HubSpot; DBX Dropbox; BOX Box Inc; AI C3.ai; PATH UiPath; SOUN SoundHound; IONQ IonQ; RGTI Rigetti; LMND
Lemonade; OPEN Opendoor; Z Zillow; RDFN Redfin; CZR Caesars; BKNG Booking Holdings; MTCH Match Group; BMBL
Bumble; YELP Yelp; WEN Wendy's; DPZ Domino's; PZZA Papa John's; CAVA Cava; BROS Dutch Bros; KDP Keurig; MNST
Monster Beverage; STZ Constellation Brands; TAP Molson Coors; GIS General Mills; K Kellogg; CPB Campbell;
HSY Hershey; TSN Tyson; KMB Kimberly-Clark; CLX Clorox; EL Estee Lauder, Estée Lauder; ULTA Ulta; RL Ralph
Lauren; UAA Under Armour; CROX Crocs; DECK Deckers; ONON On Holding; GPS Gap Inc; URBN Urban Outfitters; ANF
Abercrombie; AZO AutoZone; ORLY O'Reilly; KMX CarMax; HOG Harley-Davidson; WBA Walgreens; CI Cigna; ELV
Elevance; CNC Centene; DXCM Dexcom; SYK Stryker; BSX Boston Scientific; ZTS Zoetis; ILMN Illumina; HIMS
Hims; TDOC Teladoc; VKTX Viking Therapeutics; SNY Sanofi; TAK Takeda; TEVA Teva; KMI Kinder Morgan; WMB
Williams Companies; ET Energy Transfer; EOG EOG Resources; DVN Devon; FANG Diamondback; MPC Marathon
Petroleum; VLO Valero; PSX Phillips 66; BKR Baker Hughes; NRG NRG Energy; D Dominion; EXC Exelon; PCG PG&E;
PLUG Plug Power; RUN Sunrun; SEDG SolarEdge; CHPT ChargePoint; QS QuantumScape; OKLO Oklo; SMR NuScale; ALB
Albemarle; SQM SQM; MP MP Materials; LAC Lithium Americas; DHI D.R. Horton; LEN Lennar; WHR Whirlpool; WM
Waste Management; RSG Republic Services; EQIX Equinix; CCI Crown Castle; PSA Public Storage; VICI Vici; SWK
Stanley Black & Decker; SPCE Virgin Galactic; RKLB Rocket Lab; ASTS AST SpaceMobile; LUNR Intuitive
Machines; JOBY Joby; ACHR Archer Aviation; KTOS Kratos; LHX L3Harris; HII Huntington Ingalls; TDG TransDigm;
HWM Howmet; SPR Spirit AeroSystems; ERJ Embraer; BBD.B.TO Bombardier;
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
