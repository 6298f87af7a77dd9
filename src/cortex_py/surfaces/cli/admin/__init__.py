"""Commands for operators: upkeep, encryption, licences, tokens, organisations, audit."""
