"""The main signs in German, French, Spanish, Portuguese, Italian, Russian, Chinese and Japanese."""

from __future__ import annotations

from typing import Final

from .signs import HIDES, OVERRIDES, Sign, sign

FOREIGN: Final[tuple[Sign, ...]] = (
    sign(
        OVERRIDES,
        "ignorier missacht vergiss vergess",
        r"\b(?:ignorier|missacht|vergiss|vergess)\w{0,4} .{0,40}(?:anweisung|instruktion|vorgabe"
        r"|systemprompt|regeln\b)",
    ),
    sign(
        OVERRIDES,
        "consigne instruction regle",
        r"\b(?:ignor(?:e|ez|er)|oubli(?:e|es|ez|er)|ne tenez pas compte) .{0,40}(?:instruction"
        r"|consigne|regles (?:prec|ant))",
    ),
    sign(
        OVERRIDES,
        "instruc indicacion reglas",
        r"\b(?:ignor(?:a|e|ar|en|ad)|olvid(?:a|e|ar|en)|descart(?:a|e|ar)|desconsider(?:a|e|ar))"
        r" .{0,40}(?:instruccion|instruco|instrucoes|indicacion|reglas (?:ant|prev))",
    ),
    sign(OVERRIDES, "istruzion", r"\b(?:ignora|dimentica|ignorate) .{0,40}istruzion"),
    sign(
        OVERRIDES,
        "инструкци указани правил",
        r"(?:игнорир|забуд|не обращай)\w{0,6} .{0,40}(?:инструкци|указани|предыдущ\w{1,3} правил)",
    ),
    sign(
        OVERRIDES,
        "忽略 无视 無視 忘记 忘掉 不要理会 忽視",
        r"(?:忽略|忽視|无视|無視|忘记|忘掉|不要理会).{0,12}(?:指令|指示|提示词|规则|規則|说明|命令)",
    ),
    sign(OVERRIDES, "無視 忘れ 従わ", r"(?:指示|命令|ルール|プロンプト|指令).{0,8}(?:無視|忘れ|従わな)"),
    sign(
        OVERRIDES,
        "anterior precede vorherige obige acima",
        r"\b(?:ignor|olvid|oubli|esque|vergiss|vergess)\w{1,4} (?:sie )?(?:todo lo anterior|tudo"
        r" (?:o que|acima)|tout ce qui precede"
        r"|alles (?:vorherige|obige))",
    ),
    sign(OVERRIDES, "系统提示 系統提示", r"(?:忽略|无视|無視|泄露|输出|忘记).{0,6}(?:系统提示|系統提示)"),
    sign(
        HIDES,
        "utilisateur operateur",
        r"\bn(?:e |')(?:dites|dis|revelez|revele|mentionnez|montrez|informez) (?:pas|rien|jamais)"
        r" .{0,20}(?:utilisateur|operateur)",
    ),
    sign(
        HIDES,
        "nutzer anwender betreiber",
        r"\b(?:sag|erzahl|verrat|zeig|teil|meld)\w{0,3} .{0,30}(?:nutzer|anwender"
        r"|betreiber)\w{0,2} .{0,20}(?:nicht|nichts)\b|(?:verheimlich|verschweig)\w{0,3}"
        r" .{0,30}(?:nutzer|anwender|betreiber)",
    ),
    sign(
        HIDES,
        "usuario operador",
        r"\bno (?:le |se lo )?(?:digas|diga|menciones|reveles|informes|muestres)"
        r" .{0,40}(?:usuario|operador)",
    ),
    sign(HIDES, "用户 操作员 用戶", r"(?:不要|别|勿|不得)(?:告诉|通知|让|向|告訴).{0,6}(?:用户|操作员|用戶)"),
    sign(
        HIDES,
        "ユーザー 利用者 オペレーター",
        r"(?:ユーザー|利用者|オペレーター)(?:に|には|へ).{0,15}(?:言わない|知らせない|教えない|伝えない|話さない|秘密)",
    ),
)
