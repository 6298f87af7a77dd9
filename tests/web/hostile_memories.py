"""Memories that try to run a script where they are shown; each would set `window.ran`."""

from __future__ import annotations

__all__ = ["HOSTILE"]

_RUN = "window.ran=1"
_TAGS = (
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<body onload={}>",
    "<iframe srcdoc='<script>parent.{}</script>'></iframe>",
    "<details open ontoggle={}>x</details>",
    "<input autofocus onfocus={}>",
    "<video src=x onerror={}></video>",
    "<audio src=x onerror={}></audio>",
    "<object data='javascript:{}'></object>",
    "<embed src='javascript:{}'>",
    "<form action='javascript:{}'><button>x",
    "<math><mi xlink:href='javascript:{}'>x</mi></math>",
    "<a href='javascript:{}'>x</a>",
    "<base href='javascript:{}//'>",
    "<meta http-equiv=refresh content='0;url=javascript:{}'>",
    "<link rel=stylesheet href='javascript:{}'>",
    "<style>@import 'javascript:{}';</style>",
    "<marquee onstart={}>x</marquee>",
    "<template><script>{}</script></template>",
    "<noscript><img src=x onerror={}></noscript>",
    "<select autofocus onfocus={}>",
    "<textarea autofocus onfocus={}>",
    "<isindex onfocus={} autofocus>",
    "<svg><animate onbegin={} attributeName=x dur=1s>",
    "<p style='x:expression({})'>",
    "<img src=x:x onerror\n=\n{}>",
    "<IMG SRC=x OnErRoR={}>",
    "<scr<script>ipt>{}</scr</script>ipt>",
)
_MARKDOWN = (
    "[x](javascript:{})",
    "[x](JaVaScRiPt:{})",
    "[x](data:text/html,<script>{}</script>)",
    "[x](vbscript:{})",
    '![x](x" onerror="{})',
    '[x](http://a" onclick="{})',
    "`<script>{}</script>`",
    "```html\n<script>{}</script>\n```",
    "# <script>{}</script>",
    "- <img src=x onerror={}>",
    "> <svg onload={}>",
    "**<img src=x onerror={}>**",
    "[<img src=x onerror={}>](http://example.org)",
    'http://example.org/"onmouseover="{}',
)
_BREAKOUTS = (
    "</pre><script>{}</script>",
    "</title><script>{}</script>",
    '"><script>{}</script>',
    "'><script>{}</script>",
    "--><script>{}</script>",
    "]]><script>{}</script>",
    "</script><script>{}</script>",
    "{{{{constructor.constructor('{}')()}}}}",
)
HOSTILE = tuple(one.format(_RUN) for one in (*_TAGS, *_MARKDOWN, *_BREAKOUTS))
