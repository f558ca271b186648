"""The signs of English text that instructs its reader, matched against folded text."""

from __future__ import annotations

from typing import Final

from .signs import ADDRESSES, CLAIMS, HIDES, OVERRIDES, ROLE, TOOL, Sign, sign

_BEFORE = r"(?:all|any|every|the|your|of|and|these|those|other|my|both|its|his)"
_EARLIER = (
    r"(?:previous|prior|earlier|above|preceding|existing|foregoing|former|original|current"
    r"|your|system|safety|given)"
)
_RULES = (
    r"(?:instruction|rule|prompt|guideline|directive|constraint|guardrail|command|polic(?:y"
    r"|ies)|safeguard|restriction)"
)
_IGNORE = (
    r"(?:ignor\w{1,3}|disregard\w{0,3}|forget|overrid\w{1,3}|bypass|discard|circumvent|(?:do"
    r" not|don't|stop) (?:follow|obey)\w{0,3})"
)
_READER = (
    r"(?:ai|llm|language model|ai model|assistant|ai assistant|agent|ai agent|trading agent"
    r"|trading bot|bot|chatbot)"
)
_PEOPLE = (
    r"(?:user|users|operator|human|humans|reviewer|human reviewer|owner|supervisor"
    r"|administrator|admin|anyone|anybody"
    r"|compliance|person in charge)\b"
)
_DONT = r"(?:do not|don't|dont|never|must not|should not|without)"
_USE = r"(?:call|calls|run|use|invoke|execute|trigger)"
_TOOL_NAME = (
    r"(?:remember(?:_\w{4,10})?|open_thesis|update_thesis|close_thesis|resolve_memory"
    r"|flag_memory|validate_lesson|record_order_\w{6,7}|report_positions|advance_clock"
    r"|place_order|submit_order|send_order|execute_trade|\w{2,20}_tool)"
)
_AT_ONCE = r"(?:with|on (?:this|all|every)|right away|now|immediately|at once|for every)\b"

ENGLISH: Final[tuple[Sign, ...]] = (
    sign(
        OVERRIDES,
        "ignor disregard forget overrid discard",
        rf"\b{_IGNORE} (?:everything|all|anything|what(?:ever)?)(?: (?:that )?(?:is|was|came|you))?"
        r" (?:above|before|prior|previously|were told|have been told|know)\b(?! ?[$€]?\d)(?! the"
        r" (?:open|print|close|gap))",
    ),
    # "Ignore all rules of thumb" is about rules of thumb.
    sign(
        OVERRIDES,
        "ignor disregard forget overrid bypass discard circumvent follow obey",
        rf"\b{_IGNORE}\W{{0,3}}(?:{_BEFORE}\W{{1,3}}){{0,3}}{_EARLIER}\W{{0,3}}(?:{_EARLIER}\W{{1,3}}){{0,2}}{_RULES}",
    ),
    sign(
        OVERRIDES,
        "ignor disregard forget overrid bypass",
        rf"\b{_IGNORE} (?:all|any) (?:the |of )?{_RULES}s?\b(?! of thumb)",
    ),
    sign(OVERRIDES, "instruction", r"(?:^|[.!:]\s?)(?:your )?new (?:system )?instructions?\b ?:"),
    sign(
        OVERRIDES,
        "your",
        rf"\b(?:override|overrides|supersede|supersedes|replace|replaces) (?:all |any )?(?:of"
        rf" )?your (?:{_EARLIER} )?(?:{_RULES}|prompt|training)",
    ),
    sign(
        OVERRIDES,
        "your",
        r"\byour (?:only|new|real|true|sole) (?:goal|task|objective|purpose|mission|instructions?"
        r"|role)\b",
    ),
    sign(OVERRIDES, "follow obey", r"\b(?:follow|obey) only (?:this|these|the following|my)\b"),
    sign(
        OVERRIDES,
        "given told received",
        rf"\b(?:{_RULES}s?|guidance|orders) (?:that )?you(?: have|'ve)? (?:were|been|got|received|had)\b",
    ),
    sign(
        OVERRIDES,
        "your",
        rf"\byour (?:\w{{3,10}} )?{_RULES}s? (?:(?:have|has|are|is) (?:now )?(?:changed|void"
        rf"|obsolete|suspended|revoked|null)"
        r"|(?:do|does) not apply|no longer appl)",
    ),
    sign(
        OVERRIDES,
        "user operator developer",
        r"\b(?:ignore|disregard|disobey|refuse|not) (?:what|whatever|anything|everything) (?:the|your) "
        r"(?:user|operator|developer|human|owner)s? (?:ask|say|said|want|tell|told|request)"
        r"|\b(?:ignore|disobey|do not (?:obey|listen to)) (?:the|your) (?:user|operator|developer"
        r"|human|risk officer)\b",
    ),
    sign(
        OVERRIDES,
        "says",
        r"\b(?:do|follow|obey|trust) (?:exactly )?what this (?:note|memory|message|text|entry"
        r"|lesson) (?:says|tells)",
    ),
    sign(
        OVERRIDES,
        "constraint rule instruction guideline restriction polic command prompt",
        rf"\b{_EARLIER} (?:{_EARLIER} )?{_RULES}s? (?:are|were|is|have been|has been) (?:now |hereby )?"
        r"(?:cancel|void|lifted|revoked|withdrawn|obsolete|null|replaced|superseded|suspended)",
    ),
    sign(OVERRIDES, "in~your", rf"\b{_RULES}s? in your\b"),
    sign(
        OVERRIDES,
        "this",
        r"\b(?:trust|follow|obey) (?:only )?this (?:note|memory|message|text|lesson|entry)\b"
        r"|\bthis (?:note|memory|message|text|lesson|entry) (?:\w{2,12} ){0,8}must be (?:followed"
        r"|obeyed|executed)\b",
    ),
    sign(ROLE, "<| |>", r"<\|[a-z_]{2,20}\|>"),
    sign(ROLE, "[inst [/inst <<sys", r"\[/?inst\]|<</?sys>>"),
    sign(
        ROLE,
        "tool_ function_ <system </system <assistant <user <instruction",
        r"</?(?:tool_(?:result|call|use|response|output)s?|function_(?:call|result)s?"
        r"|system(?:[-_](?:reminder|prompt|message))?|assistant|user"
        r"|instructions?)(?:\s[^>\n]{0,80})?/?>",
    ),
    sign(ROLE, "assistant human", r"^\s{0,4}\W{0,2}(?:assistant|human)\W{0,2}:\s"),
    sign(
        ROLE,
        "#",
        r"^\s{0,3}#{1,6} ?(?:system|assistant|instructions?|developer)(?: (?:prompt"
        r"|message))?\s?:?\s{0,3}$",
    ),
    sign(ROLE, "role", r"[\"']?role[\"']?\s?[:=]\s?[\"'](?:system|assistant|developer|tool|user)[\"']"),
    sign(
        ADDRESSES,
        "you~are",
        r"\byou are (?:now )?(?:dan\b|an? (?:ai|llm|language model|helpful|unrestricted"
        r"|assistant)\b|in (?:developer|debug|god|admin|maintenance) mode|no longer (?:bound"
        r"|restricted|limited))",
    ),
    sign(
        ADDRESSES, "as~an as~the", rf"\bas (?:an?|the) (?:helpful )?{_READER}\b,? (?:you|your|it is your|we)"
    ),
    sign(
        ADDRESSES,
        "to for attention dear hey",
        rf"\b(?:(?:note|message|memo|instructions?|orders?|notice|reminder|directive|command"
        rf"|hint)s? (?:to|for)|attention"
        rf"|dear|hey)[ :,]{{1,2}}(?:the |any |all |every |whichever )?{_READER}s?\b(?!"
        rf" (?:committee|fee|bank|portfolio))",
    ),
    sign(
        ADDRESSES,
        "this",
        rf"\b{_READER}s? (?:that |which |who |currently )?(?:read|see|retriev|process"
        rf"|recall)\w{{0,3}} this\b",
    ),
    sign(
        ADDRESSES,
        "this",
        r"\b(?:when|if|once|after|whenever) you (?:read|see|retrieve|process|recall|find)\w{0,3}"
        r" this (?:note|memory|text|message|lesson|entry)",
    ),
    sign(
        ADDRESSES,
        "system",
        r"\bsystem (?:prompt|message|notice|override|instruction|directive)s? ?(?:to|for|:)",
    ),
    sign(
        ADDRESSES,
        "your",
        r"\byour (?:system prompt|prior prompt|developers?|context window|guardrails|safety)\b",
    ),
    sign(
        CLAIMS,
        "treat consider regard mark",
        r"\b(?:treat|consider|regard|mark) (?:this|the present) (?:lesson|memory|note|text|entry"
        r"|message)? ?(?:as|to be)? ?(?:already )?(?:validated|approved|trusted|authoritative"
        r"|verified|confirmed|an? (?:instruction|order|system)|high(?:est)? priority)",
    ),
    sign(
        CLAIMS,
        "without",
        r"\b(?:you (?:may|can|must|should)|you are (?:now )?(?:authori[sz]ed|allowed|permitted"
        r"|free) to|go ahead and) [\w ]{2,40} without (?:asking|approval|confirm|limit"
        r"|restriction|human|review|permission)",
    ),
    sign(
        CLAIMS,
        "without",
        r"\b(?:comply|obey|proceed) (?:\w{2,12} )?without (?:asking|question|delay|approval"
        r"|confirm)",
    ),
    sign(
        CLAIMS,
        "approve",
        r"\bapprove (?:all|every|any) (?:pending |future |open )?(?:proposal|order|request|trade"
        r"|memor)\w{0,3}\b",
    ),
    sign(
        ADDRESSES,
        "you~are pretend",
        rf"\bif you are an? {_READER}\b|\bpretend (?:that )?(?:you are|you're|to be)\b",
    ),
    sign(ADDRESSES, "model ", r"\b(?:dear|hey|attention|note to the) (?:language )?model\b"),
    sign(
        ADDRESSES,
        "this",
        r"\b(?:who(?:so)?ever|anyone who|anything that|whichever \w{2,10}) (?:reads|retrieves"
        r"|processes|recalls|sees|finds) this\b"
        r"|\b(?:when|while|before|after) (?:summari[sz]ing|reading|retrieving|quoting|recalling"
        r"|processing|citing) this"
        r" (?:note|memory|text|message|lesson|entry)",
    ),
    sign(
        ADDRESSES,
        "respond reply answer message response output",
        r"\b(?:respond|reply|answer) only (?:with|in)\b"
        r"|\bin your (?:next|final|first) (?:message|answer|response|reply|output|turn)\b",
    ),
    sign(
        ADDRESSES,
        "system",
        r"\b(?:begin|start|enter|initiate) (?:system|admin|developer|debug)\b|\bsystem override\b",
    ),
    sign(
        CLAIMS,
        "you~to authori",
        r"\bthe (?:operator|user|administrator|admin|developer|owner|human) (?:wants|asks|asked"
        r"|told|expects|instructs|instructed|orders) you to\b"
        r"|\bauthori[sz](?:es|ed) you\b",
    ),
    sign(
        CLAIMS,
        "review_state approval review limits checks safeguards",
        r"\b(?:skip|bypass|disable|turn off|switch off|suspend) (?:the |all |any )?(?:\w{3,10}"
        r" )?(?:review step|review|approval|risk checks?"
        r"|safeguards?|limits)\b(?! (?:of|for|at) )|\breview_state (?:to|=|as)|\ball (?:risk"
        r" )?(?:limits|checks|safeguards)"
        r" (?:are |have been )?(?:now )?(?:disabled|lifted|off|removed|suspended)\b",
    ),
    sign(
        CLAIMS,
        "act~as",
        r"\bact as (?:root|admin|administrator|superuser|the (?:operator|reviewer|owner|user))\b",
    ),
    sign(
        CLAIMS,
        "approval permission confirmation consent",
        r"\byou (?:no longer|do not|don't|need not) (?:need|require|have to|ask for|seek)"
        r" (?:\w{2,8} ){0,3}(?:approval|permission|confirmation|consent)"
        r"|\b(?:do not|don't|never) (?:ask|wait|seek) (?:for )?(?:\w{2,8} )?(?:confirmation"
        r"|approval|permission)\b",
    ),
    sign(
        TOOL,
        "export dump copy",
        r"\b(?:export|dump|copy|exfiltrate) (?:all |the |your |every |out )*(?:memor(?:y|ies)"
        r"|ledger|conversations?|credentials?|prompts?|secrets?)\b".replace("out )*", "out ){0,3}"),
    ),
    sign(
        ADDRESSES,
        "respond reply answer",
        r"\b(?:respond|reply|answer) to (?:every|any|all|each) (?:question|quer|request|message|prompt)",
    ),
    sign(TOOL, "_", rf"\b{_USE} (?:the )?(?:tool |function )?{_TOOL_NAME}\W.{{0,40}}{_AT_ONCE}"),
    sign(
        TOOL,
        "answering responding replying anything",
        rf"\bbefore (?:answering|responding|replying|doing anything)\b.{{0,60}}\b(?:{_USE}|buy"
        rf"|sell)\b|\b(?:{_USE}|buy|sell)\b.{{0,60}}\bbefore (?:answering|responding|replying"
        rf"|doing anything)\b",
    ),
    sign(TOOL, "tool", rf"\b{_USE} the \w{{2,20}} tool (?:to|with|and|now)\b"),
    sign(
        TOOL,
        "curl wget rm~-rf powershell |~sh |~bash",
        r"\b(?:curl|wget)\s.{0,40}https?://|\brm -rf\b|\|\s?(?:ba)?sh\b|powershell .{0,10}-",
    ),
    sign(
        TOOL,
        "http @",
        r"\b(?:send|post|upload|forward|exfiltrate|e-?mail|transmit|leak)\b.{0,60}\b(?:memor(?:y"
        r"|ies)|ledger|conversation|prompt|credentials?|api keys?|secrets?|holdings|history"
        r"|contents?|positions)\b.{0,40}\bto (?:https?://|\S{1,40}@)",
    ),
    sign(
        HIDES,
        "tell inform notify alert mention reveal show disclose report",
        rf"\b{_DONT} (?:tell|inform|notify|alert|mention|reveal|show|disclos|let"
        rf"|report)\w{{0,4}}\b[^.;!?\n]{{0,60}}\b{_PEOPLE}",
    ),
    sign(
        HIDES,
        "mention reveal disclose",
        rf"\b{_DONT} (?:mention|reveal|disclose|repeat|quote) (?:this|these) (?:note|instruction"
        rf"|message|memory|text|entry|prompt)",
    ),
    sign(
        HIDES,
        "secret hid conceal keep from",
        rf"\b(?:keep|hide|conceal|withhold) (?:this|it|that|them|these|the"
        rf" \w{{2,20}})\b[^.;!?\n]{{0,30}} from (?:the |your |any |all )?{_PEOPLE}",
    ),
    sign(
        HIDES,
        "log dark record",
        r"\b(?:do not|don't|never) (?:log|audit|journal) (?:this|it|that|any of)\b"
        r"|\bkeep\w{0,3} (?:the )?(?:user|operator|human|owner|reviewer)s? in the dark\b",
    ),
    sign(
        HIDES,
        "tell assure report",
        r"\b(?:tell|assure|report to|inform|convince) (?:the|your) (?:user|operator|reviewer"
        r"|human|owner) (?:that|it|there|everything)\b",
    ),
    sign(
        OVERRIDES,
        "limit",
        r"\byour (?:\w{3,10} )?limits? (?:do|does) not apply\b",
    ),
    sign(
        OVERRIDES,
        "aside abandon",
        rf"\b(?:set aside|put aside|abandon) (?:all |any )?(?:the |your )?(?:{_RULES}s?|guidance)"
        rf" (?:that )?(?:you|above|before)\b",
    ),
    sign(OVERRIDES, "system", rf"\b{_IGNORE} (?:the|your|any|all) system (?:message|prompt)"),
    sign(
        OVERRIDES,
        "this",
        r"\b(?:nothing|everything|anything) (?:above|before) this (?:line|note|point|message|text)\b",
    ),
    sign(
        OVERRIDES,
        "your",
        r"\b(?:print|show|reveal|output|repeat|dump) your (?:configuration|instructions|prompt|rules|system)\b",
    ),
    sign(ROLE, "[", r"\[/?(?:system|assistant|developer|tool)\]"),
    sign(
        ADDRESSES,
        "assistant agent ai model bot",
        r"(?:^|[.!?]\s)(?:ai|assistant|agent|model|chatbot|bot)[,:] (?:please|kindly|you|now)\b",
    ),
    sign(
        ADDRESSES, "this", rf"\b{_READER}s? (?:that |which |who )?(?:loads?|opens?|ingests?|quotes?) this\b"
    ),
    sign(
        ADDRESSES,
        "you who",
        r"\bfrom now on,? you (?:are|answer|act|respond|will|must|speak)\b|\b(?:you|who) ha(?:ve"
        r"|s) no (?:restrictions|rules|filters)\b",
    ),
    sign(CLAIMS, "you", r"\byou (?:must|should|shall|will) (?:now )?(?:approve|sign off|validate)\b"),
    sign(CLAIMS, "as~a", r"\bas an? (?:command|instruction|order) from (?:the|your)\b"),
    sign(HIDES, "tell", r"\btell (?:no one|nobody|noone)\b"),
)
