"""The table of credential formats that providers document: a fixed prefix or shape that names its issuer.

`PREFIXED` are formats that begin a word with a fixed text, `SHAPED` those that need an expression of their own.
Formats without a mark (a bare UUID, 40 letters) are not here: they are found by the name they are given, in
`secret_names`. Expressions take linear time (each starts with a literal or a guarded, bounded class, and no
repetition holds another) and are compiled when first needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache

__all__ = ["PREFIXED", "SHAPED", "Check", "Prefixed", "Shaped", "compiled"]


class Check(Enum):
    """What the text of a match must still prove."""

    NONE = "the shape is proof enough"
    MIXED = "not a filler such as xxxx, and digits or both cases"
    RANDOM = "also no readable words: the prefix is short or common"
    UNREADABLE = "no readable words, but a filler will do"
    JWT = "the first segment names an algorithm"


@dataclass(frozen=True, slots=True)
class Prefixed:
    """A word that begins with `prefix`; `body` is the expression of the rest."""

    kind: str
    prefix: str
    body: str
    not_after: str
    check: Check


@dataclass(frozen=True, slots=True)
class Shaped:
    """An expression that cannot match where none of the anchors is.

    The secret is the group `secret`, or the whole match; the group `body` is what the check reads.
    """

    kind: str
    anchors: tuple[str, ...]
    expression: str
    check: Check = Check.MIXED
    widens: bool = False  # the match begins inside a word: take the word's beginning along


@cache
def compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


_BODIES = {
    "A": "[A-Za-z0-9]",
    "W": "[A-Za-z0-9_-]",
    "D": "[A-Za-z0-9_.-]",
    "E": "[A-Za-z0-9_=-]",
    "B": "[A-Za-z0-9+/=]",
    "F": "[A-Za-z0-9+/=_-]",
    "S": "[A-Za-z0-9-]",
    "L": "[a-z0-9]",
    "U": "[A-Z0-9]",
    "H": "[0-9a-f]",
    "X": "[0-9a-fA-F]",
    "G": "[0-9a-f-]",
}
A, W, H, L, U = (_BODIES[letter] for letter in "AWHLU")
_UUID = f"{H}{{8}}-{H}{{4}}-{H}{{4}}-{H}{{4}}-{H}{{12}}"

# kind, characters of the body, its length (`+`: at least), prefixes. A `?` asks for random text.
_PREFIX_TABLE = """
    aws-session-token       B 80+     IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz
    aws-bedrock-key         B 100+    ABSK bedrock-api-key-
    alibaba-key             A 16-24 ? LTAI
    tencent-key             A 32 ?    AKID
    google-api-key          W 40+     AQ.Ab8
    google-oauth-token      W 24+     ya29. 1//0 GOCSPX-
    digitalocean-token      H 64      dop_v1_ doo_v1_ dor_v1_
    cloudflare-key          G 160-190 v1.0-
    cloudflare-token        A 40+     cfut_ cfat_ cfk_
    flyio-token             F 43+     fo1_ fm1a_ fm1r_ fm2_
    heroku-key              W 36+     HRKU- HRKU-AA
    scalingo-token          W 48      tk-us-
    render-key              A 32      rnd_
    netlify-token           A 36+     nfp_
    vercel-token            A 24+     vcp_ vci_ vca_ vcr_ vck_
    tailscale-key           S 20+     tskey-
    yandex-key              W 35-38   AQVN
    yandex-key              W 38 ?    YC
    yandex-token            D 50+     y0_ t1.9eu
    openshift-token         W 43      sha256~
    aiven-password          W 18+     AVNS_
    mongodb-secret          W 32+     mdb_sa_sk_
    planetscale-secret      D 32+     pscale_tkn_ pscale_oauth_ pscale_pw_
    supabase-key            W 30+     sbp_ sb_secret_
    neon-key                L 40+     napi_ neon_api_
    cockroachdb-key         W 40+     CCDB1_
    clickhouse-key          A 38      4b1d
    databricks-token        G 32-34   dapi
    hashicorp-vault-token   W 24+     hvs. hvb. hvr.
    hashicorp-vault-token   A 24 ?    s.
    doppler-token           D 40+     dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.
    pulumi-token            H 40      pul-
    onepassword-token       B 200+    ops_eyJ

    github-token            A 36+     ghp_ gho_ ghu_ ghs_ ghr_
    github-token            W 36+     github_pat_
    gitlab-token            D 20+     glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat-
    gitlab-token            D 20+     glffct- glwt-
    gitlab-token            W 20+     GR1348941
    bitbucket-token         E 24+ ?   ATBB
    atlassian-token         E 40+     ATATT3 ATCTT3 ATSTT3 ATOAuth
    trello-token            H 64      ATTA
    npm-token               A 36      npm_
    pypi-token              W 50+     pypi-
    rubygems-token          H 48      rubygems_
    nuget-key               L 43      oy2
    crates-token            A 32 ?    cio
    clojars-token           L 60      CLOJARS_ clojars_
    docker-token            W 27+     dckr_pat_ dckr_oat_
    artifactory-token       A 56+     cmVmdGtu
    buildkite-token         A 40+     bkua_ bkct_ bkrt_
    circleci-token          W 40+     CCIPAT_ CCIPRJ_
    octopus-key             U 26-36   API-
    sonar-token             H 40      squ_ sqp_ sqa_
    sentry-token            F 60+     sntrys_ sntryu_
    sourcegraph-token       W 40+     sgp_ slk_ sgd_ sgph_
    snyk-token              D 30+     snyk_uat. snyk_sat.
    postman-key             G 59      PMAK-
    readme-key              L 70      rdme_
    prefect-key             A 36      pnu_ pnb_
    infracost-key           A 32 ?    ico-
    figma-token             W 38+     figd_ figdr_
    linear-key              A 32+     lin_api_ lin_oauth_
    notion-token            A 43-50 ? ntn_ secret_
    contentful-token        W 43+     CFPAT-
    typeform-token          D 40+     tfp_
    launchdarkly-key        G 36      sdk- api- mob-
    defined-networking-key  E 26+     dnkey-
    intra42-secret          H 64      s-s4t2ud- s-s4t2af-
    deno-token              A 36      ddp_ ddo_
    apify-token             A 30+     apify_api_
    wakatime-key            G 36      waka_
    unkey-key               W 20+     unkey_
    zuplo-key               W 24+     zpka_
    polar-token             W 24+     polar_pat_ polar_oat_
    salad-key               W 24+     salad_cloud_
    xata-key                W 24+     xau_
    endor-key               W 24+     endr+
    thunderstore-token      W 24+     tss_
    retool-token            W 24+     retool_

    slack-token             S 20+     xapp- xwfp-
    twilio-key              H 32      SK AC
    brevo-key               S 64+     xkeysib- xsmtpsib-
    mailgun-key             H 32      key- pubkey-
    stripe-key              A 20+     sk_live_ rk_live_ sk_test_ rk_test_ sk_prod_ rk_prod_ whsec_
    square-token            W 58-64 ? EAAA
    razorpay-key            A 14+     rzp_live_ rzp_test_
    flutterwave-key         S 12+     FLWSECK- FLWSECK_TEST- FLWSECK_LIVE- FLWPUBK_TEST-
    duffel-token            E 43+     duffel_test_ duffel_live_
    easypost-key            A 54 ?    EZAK EZTK
    shippo-token            H 40      shippo_live_ shippo_test_
    shopify-token           X 32      shpat_ shpca_ shppa_ shpss_ shptka_
    woocommerce-key         H 40      ck_ cs_
    facebook-token          A 80+     EAAM EAAC EAAG EAAB EAAD EAAE EAAJ EAAK EAAL EAAN EAAU
    twitter-token           A 60+     AAAAAAAAAAAAAAAAAAAAA
    dropbox-token           W 120+    sl. sl.u. sl.B
    adobe-secret            A 32      p8e-
    adafruit-key            A 28      aio_
    grafana-token           B 32+     glc_ eyJrIjoi
    grafana-token           W 41+     glsa_
    newrelic-key            W 19+     NRAK- NRIQ- NRII- NRJS- NRRA- NRAL-
    honeycomb-key           L 40+     hcaik_ hcbik_ hcxik_ hcaic_ hcamk_
    posthog-key             A 32+     phx_ phs_
    onesignal-key           L 60+     os_v2_app_ os_v2_org_
    hubspot-token           G 36      pat-na1- pat-na2- pat-eu1- pat-ap1-
    frameio-token           E 64+     fio-u-
    intercom-token          B 40+     dG9rO
    rootly-key              H 64      rootly_
    settlemint-token        A 16+     sm_pat_ sm_sat_ sm_aat_
    stytch-secret           E 30+     secret-live- secret-test-
    ubidots-token           A 30+     BBFF- BBUS-
    mapbox-token            D 60+     sk.eyJ
    inngest-key             H 32+     signkey-prod- signkey-test- signkey-branch-

    anthropic-key           W 24+     sk-ant-
    openrouter-key          W 40+     sk-or-
    langfuse-key            G 36      sk-lf-
    openai-key              W 20+     sk-proj- sk-svcacct- sk-admin- sk-None- sess-
    openai-key              W 32+ ?   sk-
    elevenlabs-key          H 48      sk_
    huggingface-token       A 34-40 ? hf_ api_org_
    groq-key                A 40+     gsk_
    xai-key                 W 60+     xai-
    perplexity-key          A 40+     pplx-
    nvidia-key              W 50+     nvapi-
    replicate-token         A 37-40   r8_
    langsmith-key           W 32+     lsv2_pt_ lsv2_sk_ ls__
    pinecone-key            W 50+     pcsk_
    together-key            W 40+     tgp_v1_
    tavily-key              W 24+     tvly-
    firecrawl-key           H 32      fc-
    jina-key                W 50+     jina_
    cerebras-key            L 40+     csk-
    voyage-key              W 43 ?    pa-
"""


def _prefixed() -> tuple[Prefixed, ...]:
    rows: list[Prefixed] = []
    for line in filter(None, map(str.strip, _PREFIX_TABLE.splitlines())):
        kind, letter, length, *prefixes = line.split()
        check = Check.RANDOM if prefixes[0] == "?" else Check.MIXED
        if length.endswith("+"):
            body, not_after = f"{_BODIES[letter]}{{{length[:-1]},}}+", ""
        else:
            body, not_after = f"{_BODIES[letter]}{{{length.replace('-', ',')}}}(?![A-Za-z0-9_-])", "_./-"
        rows += (Prefixed(kind, prefix, body, not_after, check) for prefix in prefixes if prefix != "?")
    return tuple(sorted(rows, key=lambda row: len(row.prefix), reverse=True))


def _shaped(kind: str, anchors: str, expression: str, check: Check = Check.MIXED, *, widens: bool = False) -> Shaped:
    return Shaped(kind, tuple(anchors.split()), expression, check, widens)


_BARE = r"(?<![^\s=:\"'`,(]...)"  # three characters on: at the start, or after a space, an operator or a quote
PREFIXED = _prefixed()
SHAPED = (
    _shaped(
        "jwt",
        "eyJ",
        r"(?<![A-Za-z0-9_+/=-])(?P<body>ey[A-Za-z0-9_=-]{14,}+)\.ey[A-Za-z0-9_=-]{6,}+(?:\.[A-Za-z0-9_=-]*+){0,3}",
        Check.JWT,
    ),
    _shaped("jwt", "ZXlK", r"(?<![A-Za-z0-9+/])ZXlK[A-Za-z0-9+/]{80,}+={0,2}", Check.NONE),
    _shaped("age-secret-key", "AGE-", r"AGE-(?:SECRET-KEY-1|PLUGIN-[A-Z0-9]{1,20}-1)[0-9A-Z]{20,}+", Check.NONE),
    _shaped(
        "private-key",
        "Private-Lines:",
        r"Private-Lines: \d{1,4}\r?\n(?P<secret>(?:[A-Za-z0-9+/=]{1,80}(?:\r?\n|\Z)){1,200}+)",
        Check.NONE,
    ),
    _shaped("private-key", '"kty"', rf'"d"\s{{0,4}}:\s{{0,4}}"(?P<secret>{W}{{20,}}+)"'),
    _shaped(
        "password-hash",
        "$",
        r"(?<![\w$])\$(?:2[abxy]?|1|5|6|7|y|apr1|argon2(?:id|i|d)|pbkdf2[\w-]{0,10}|scrypt)"
        r"\$(?P<body>[A-Za-z0-9./$=,+_-]{20,}+)",
    ),
    _shaped(
        "aws-access-key",
        "AKIA ASIA ABIA ACCA A3T",
        rf"A(?:KIA|SIA|BIA|CCA|3T{U})(?<![A-Za-z0-9]....){U}{{16}}(?<!EXAMPLE)(?!{A})",
        Check.NONE,
    ),
    _shaped("azure-key", "AccountKey= AccessKey=", r"A(?:ccount|ccess)Key=(?P<secret>[A-Za-z0-9+/]{42,86}={1,2})"),
    _shaped("azure-key", "AZDO", rf"(?<!{A})(?P<body>{A}{{76}}AZDO{A}{{4}})(?!{A})"),
    _shaped("azure-key", "JQQJ99", rf"(?<!{A})(?P<body>{A}{{52}}JQQJ99{A}{{26}})(?!{A})"),
    _shaped("azure-key", "AzFu AzSe", rf"(?<!{W})(?P<body>{W}{{42,44}}Az(?:Fu|Se){W}{{6,8}}={{0,2}})(?!{A})"),
    _shaped(
        "azure-client-secret",
        "Q~",
        r"Q~(?<=[A-Za-z0-9_~.-]{3}\dQ~)(?P<body>[A-Za-z0-9_~.-]{31,34})(?![A-Za-z0-9_~-])",
        widens=True,
    ),
    # Google's keys also name public web applications; alone in a text, one gives nothing away.
    _shaped(
        "google-api-key",
        "AIza",
        rf"(?<!{A})AIza(?P<body>{W}{{35}})(?!{W})(?:(?<=\S[\s\S]{{2}}AIza{W}{{35}})|(?=[\"'`]?[\s,;.]+\S))",
    ),
    _shaped("signed-url", "sig=", r"[?&]sig=(?P<secret>[A-Za-z0-9%+/=_-]{40,256})"),
    _shaped("signed-url", "Signature=", r"[?&](?:X-(?:Amz|Goog)-)?Signature=(?P<secret>[A-Za-z0-9%+/=_-]{27,1024})"),
    _shaped("firebase-server-key", ":APA91b", rf":APA91b(?<=AAAA{W}{{7}}:APA91b)(?P<body>{W}{{100,}}+)", widens=True),
    _shaped("softlayer-key", "softlayer.com/soap/", rf"softlayer\.com/soap/v3(?:\.1)?/(?P<secret>{L}{{64}})"),
    _shaped("hashicorp-terraform-token", ".atlasv1.", r"\.atlasv1\.(?P<body>[A-Za-z0-9_=-]{60,}+)", widens=True),
    _shaped(
        "onepassword-secret-key",
        "A3-",
        rf"A3-(?<!{A}A3-)(?P<body>{U}{{6}}-(?:{U}{{11}}|{U}{{6}}-{U}{{5}})(?:-{U}{{5}}){{3}})(?!{A})",
    ),
    _shaped("gitlab-session", "_gitlab_session=", rf"_gitlab_session=(?P<secret>{L}{{32}})"),
    _shaped(
        "bundler-credential",
        "BUNDLE_",
        r"BUNDLE_[A-Z_]{3,60}__(?:COM|ORG|NET|IO|DEV)[=:][ \t]{0,2}[\"']?(?P<secret>[^\s\"']{8,128})",
    ),
    _shaped("artifactory-key", "AKC", rf"AKC{_BARE}{A}{{10,}}+(?![A-Za-z0-9_-])", Check.NONE),
    _shaped(
        "artifactory-key",
        "AP0 AP1 AP2 AP3 AP4 AP5 AP6 AP7 AP8 AP9",
        rf"AP[0-9]{_BARE}{A}{{10,}}+(?![A-Za-z0-9_-])",
        Check.NONE,
    ),
    _shaped(
        "artifactory-key",
        "APA APB APC APD APE APF",
        rf"AP[A-F]{_BARE}(?P<body>{A}{{10,}}+)(?![A-Za-z0-9_-])",
        Check.UNREADABLE,
    ),
    _shaped("airtable-key", "pat", rf"pat(?<!{A}pat)(?P<body>{A}{{14}}\.{H}{{64}})(?!{A})"),
    _shaped("harness-token", "pat. sat.", rf"[ps]at\.(?<!{A}.at\.)(?P<body>{A}{{22}}\.{A}{{24}}\.{A}{{20}})(?!{A})"),
    _shaped("clickup-token", "pk_", rf"pk_(?<!{A}pk_)(?P<body>\d{{5,10}}_{U}{{32}})(?!{A})"),
    _shaped("resend-key", "re_", rf"re_(?<!{A}re_)(?P<body>{A}{{8}}_{A}{{20,30}})(?!{W})", Check.RANDOM),
    _shaped("zoho-token", "1000.", rf"1000\.(?P<body>{H}{{32}}\.{H}{{32}})(?!{A})"),
    _shaped("dynatrace-token", "dt0", rf"dt0[a-z]\d\d\.(?P<body>{U}{{8,24}}\.{U}{{64}})(?!{A})"),
    _shaped("asana-token", "/", r"/(?<=[12]/)\d{10,20}(?:/\d{10,20})?:(?P<body>[0-9a-f]{32})(?![0-9a-f])", widens=True),
    _shaped("authress-key", ".acc-", r"\.acc-(?P<body>[A-Za-z0-9+/_=-]{10,32}\.[A-Za-z0-9+/_=-]{30,120})", widens=True),
    _shaped(
        "rapidapi-key", "msh", rf"msh(?<={H}{{10}}msh)(?P<body>{H}{{15}}p1{H}{{5}}jsn{H}{{12}})(?!{A})", widens=True
    ),
    _shaped("maxmind-key", "_mmk", rf"_mmk(?<=(?P<body>{A}{{6}}_{A}{{29}})_mmk)(?!{A})", widens=True),
    _shaped("slack-token", "xox", r"xox(?<![A-Za-z0-9]xox)[abceoprs](?:\.xox[a-z])?-(?P<body>[A-Za-z0-9-]{10,}+)"),
    _shaped(
        "slack-webhook",
        "hooks.slack",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/]{20,}+)",
    ),
    _shaped("discord-webhook", "/api/webhooks/", rf"/api/webhooks/\d{{15,21}}/(?P<secret>{W}{{40,}}+)"),
    _shaped(
        "discord-token",
        ".",
        rf"\.(?:(?<=[MNO]{W}{{23}}\.)|(?<=[MNO]{W}{{24}}\.)|(?<=[MNO]{W}{{25}}\.))"
        rf"{W}{{6}}\.(?P<body>{W}{{38}}|{W}{{27}})(?!{W})",
        Check.RANDOM,
        widens=True,
    ),
    _shaped(
        "teams-webhook",
        "webhook.office.com/",
        rf"webhook\.office\.com/(?P<secret>webhookb2/[A-Za-z0-9@-]{{36,80}}/IncomingWebhook/{A}{{20,40}}(?:/{_UUID})?)",
        Check.NONE,
    ),
    _shaped(
        "zapier-webhook",
        "hooks.zapier.com/",
        r"hooks\.zapier\.com/hooks/catch/(?P<secret>\d{4,12}/[A-Za-z0-9]{6,})",
        Check.NONE,
    ),
    _shaped("telegram-token", ":A", rf"(?:(?<!{A})|(?<=/bot))\d{{8,10}}:A(?P<body>{W}{{34}})(?!{W})"),
    _shaped("sendgrid-key", "SG.", rf"SG\.(?<!{A}SG\.)(?P<body>{W}{{16,32}}\.{W}{{16,64}})(?!{W})"),
    _shaped(
        "mailgun-key", "-", rf"-(?<={H}{{32}}-)(?P<body>{H}{{8}}-{H}{{8}})(?![A-Za-z0-9-])", Check.NONE, widens=True
    ),
    _shaped("mailchimp-key", "-us", rf"-us(?<={H}{{32}}-us)\d{{1,2}}(?!{A})", Check.NONE, widens=True),
    _shaped("square-token", "sq0", r"sq0[a-z]{3}-(?P<body>[A-Za-z0-9_\\-]{22,60})"),
    _shaped("paypal-token", "access_token$", rf"access_token\$\w{{5,12}}\$(?P<body>{L}{{16}}\${H}{{32}})"),
    _shaped("plaid-token", "access-", rf"access-(?:sandbox|development|production)-(?P<body>{_UUID})"),
    _shaped(
        "gocardless-token",
        "live_ sandbox_",
        rf"(?:live|sandbox)_(?<!{W}live_)(?P<body>{W}{{40,43}})(?!{W})",
        Check.RANDOM,
    ),
    _shaped("lob-key", "live_ test_", rf"(?:live|test)_(?<!{W}.....)(?P<body>{H}{{35}})(?!{A})"),
    _shaped("facebook-token", "|", rf"\|(?<=\d{{15}}\|)(?P<body>{W}{{27,40}})(?!{W})", Check.RANDOM, widens=True),
    _shaped("openai-key", "T3BlbkFJ", rf"T3BlbkFJ(?<=sk-{A}{{20}}T3BlbkFJ)(?P<body>{W}{{16,}}+)", widens=True),
)
