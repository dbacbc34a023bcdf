"""Whether a text for people contains Python; no program that is shipped asks this of a text."""

import re

_IN_A_COMMAND = re.compile(
    r"\btc\.|\b(Ledger|Cost|Budget|Filter|Question|Unit|Fraction)[.(]|\b[a-z_]+\.[a-z_]+\(|(?<![\w-])\.\w+\("
    r"|(?<![\w-])[a-z_]\w*=(?!=)|\w\[['\"]|\b(float|range|date)\(|\[\.\.\.\]|#|with_columns"
)
_TYPED = re.compile(r"--[a-z]+ (\"[^\"]*\"|\S+)|export \w+=\S+")
#: What is quoted as SQL or JSON is not Python, and options of PLINK are not those of a command of Tacit.
_IN_A_SERVICE = re.compile(
    r"\btc\.|\b(Ledger|Cost|Budget|Filter|Question|Unit|Fraction)[.(]|(?<![\w-])\.\w+\("
    r"|\b(?!LEAST|GREATEST|CAST|COUNT|AVG|SUM|MAX|MIN)[a-z_]+\.[a-z_]+\("
    r"|(?<![\w-])[a-z_]\w*=(?!=)|\w\[['\"]|\b(float|range|date)\(|\[\.\.\.\]|with_columns|--(?!make-bed|bfile)[a-z]"
)


def speaks_python(text):
    """Report whether text contains Python, apart from options and quoted commands."""
    return _IN_A_COMMAND.search(_TYPED.sub("", text)) is not None


def speaks_code(text):
    """Report whether text contains Python or options of a command."""
    return _IN_A_SERVICE.search(text) is not None
