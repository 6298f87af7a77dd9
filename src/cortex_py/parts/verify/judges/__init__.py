"""From checks to a verdict: the claim model, how well prose supports a claim, and the optional second judges."""
